package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// Case 48: a client remembers nothing of names that were locked, and a server one
// small counter, for a day.
func TestManyNamesLeaveOneCounterEachForADay(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		const names = 500
		for i := range names {
			held := mustAcquire(t, b, lease(fmt.Sprint("name-", i), 20*time.Second))
			if err := b.Renew(ctx, held); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, b, held)
		}
		if b.Lanes() != 0 {
			t.Errorf("%d owners are remembered", b.Lanes())
		}
		if n := c.DBSize(ctx).Val(); n != names {
			t.Errorf("%d keys are left of %d names, want a counter each", n, names)
		}
		for i := range names {
			counter := redis.CounterKey(fmt.Sprint("name-", i))
			if life := c.PTTL(ctx, counter).Val(); life <= 0 || life > 24*time.Hour+30*time.Second {
				t.Fatalf("a counter lives for %v, want a day beyond its last lease", life)
			}
			if size, err := c.MemoryUsage(ctx, counter).Result(); err == nil && size > 256 {
				t.Fatalf("a counter takes %d bytes", size)
			}
		}
	})
}

// Case 49: what has no script loaded any more loads it: waiters and sources too.
func TestScriptFlushBeforeAWaitAndADraw(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b, tokens := newBackend(t, s.Client()), newTokens(t, s.Client())
		for range 3 {
			if err := c.ScriptFlush(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Wait(ctx, lease("k", time.Second)); err != nil {
				t.Errorf("wait: %v", err)
			}
			if err := c.ScriptFlush(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := tokens.Next(ctx, "k", 0); err != nil {
				t.Errorf("draw: %v", err)
			}
		}
	})
}
