package redis_test

import (
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

func TestLockIsAPlainString(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		held := mustAcquire(t, b, lease("orders/42", 20*time.Second))
		if got := c.Get(ctx, "orders/42").Val(); got != held.Owner {
			t.Error("the value of the key is not the owner")
		}
		if got := c.PTTL(ctx, "orders/42").Val(); got < 15*time.Second || got > 20*time.Second {
			t.Errorf("got a term of %v, want 20s", got)
		}
		if got := c.PTTL(ctx, redis.CounterKey("orders/42")).Val(); got < 24*time.Hour {
			t.Errorf("got a counter that lives for %v, want a day beyond the term", got)
		}
		mustRelease(t, b, held)
		if got := locks(t, c); len(got) != 0 {
			t.Errorf("after the release there are %q", got)
		}
	})
}

func TestPlainRedlockClientsExcludeAndAreExcluded(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		const del = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

		held := mustAcquire(t, b, lease("k", 10*time.Second))
		if ok := c.SetNX(ctx, "k", "plain", time.Second).Val(); ok {
			t.Error("a plain client got a key that is held")
		}
		if n, _ := c.Eval(ctx, del, []string{"k"}, "plain").Int(); n != 0 {
			t.Error("a plain client released our lock")
		}
		mustRelease(t, b, held)

		if ok := c.SetNX(ctx, "k", "plain", 5*time.Second).Val(); !ok {
			t.Fatal("a plain client did not get a free key")
		}
		seen, err := b.Acquire(ctx, lease("k", 10*time.Second))
		if !errors.Is(err, backend.ErrHeld) || seen.TTL <= 0 || seen.TTL > 5*time.Second || seen.Token != held.Token || seen.Owner != "" {
			t.Errorf("got %v, %v left, token %d; want ErrHeld, 5s, %d", err, seen.TTL, seen.Token, held.Token)
		}
		if err := b.Release(ctx, held); !errors.Is(err, backend.ErrLost) { // Cases 36 and 38.
			t.Errorf("release of what a plain client holds: got %v, want ErrLost", err)
		}
		if n, _ := c.Eval(ctx, del, []string{"k"}, "plain").Int(); n != 1 {
			t.Error("a plain client could not release its own lock")
		}
		next := mustAcquire(t, b, lease("k", 10*time.Second))
		if next.Token <= held.Token {
			t.Errorf("token %d after %d", next.Token, held.Token)
		}
	})
}

// startsAnew checks that another acquire of one's own key, for 5 s, starts its
// term anew and never shortens it.
func startsAnew(t *testing.T, c *goredis.Client, again func()) {
	t.Helper()
	ctx := t.Context()
	c.PExpire(ctx, "k", time.Second)
	again()
	if left := c.PTTL(ctx, "k").Val(); left < 2*time.Second {
		t.Errorf("the term did not start anew: %v left", left)
	}
	c.PExpire(ctx, "k", 20*time.Second)
	again()
	if left := c.PTTL(ctx, "k").Val(); left < 15*time.Second {
		t.Errorf("the term was shortened: %v left", left)
	}
	c.Persist(ctx, "k")
	again()
	if left := c.PTTL(ctx, "k").Val(); left <= 0 {
		t.Error("the key has no expiry")
	}
}

func TestRepeatedAcquireIsOneAcquire(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, c)
		want := lease("k", 5*time.Second)
		first := mustAcquire(t, b, want)

		startsAnew(t, c, func() {
			if again := mustAcquire(t, b, want); again.Token != first.Token {
				t.Errorf("the token moved from %d to %d", first.Token, again.Token)
			}
		})
		late := want
		late.Start = want.Start.Add(2 * time.Second) // a caller that does not keep Start
		if again := mustAcquire(t, b, late); again.Token != first.Token {
			t.Errorf("a clock moved the token from %d to %d", first.Token, again.Token)
		}
	})
}

func TestRenewAssertsTheToken(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		ahead := lease("k", 5*time.Second)
		ahead.Token = backend.Token(time.Now().Add(time.Hour).UnixMicro())
		held := mustAcquire(t, b, ahead)
		c.Del(ctx, redis.CounterKey("k")) // as eviction does
		c.PExpire(ctx, "k", time.Second)
		if err := b.Renew(ctx, held); err != nil {
			t.Fatal(err)
		}
		if left := c.PTTL(ctx, "k").Val(); left < 2*time.Second {
			t.Errorf("the term did not start anew: %v left", left)
		}
		mustRelease(t, b, held)
		if next := mustAcquire(t, b, lease("k", time.Second)); next.Token <= held.Token {
			t.Errorf("token %d after %d", next.Token, held.Token)
		}
	})
}

// Cases 24 and 25.
func TestRenewOfWhatIsLostIsErrLostAndNoKey(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		held := mustAcquire(t, b, lease("k", time.Second))
		c.Set(ctx, "k", held.Owner+"0", time.Second) // Case 15: an owner is not a prefix.
		if err := b.Renew(ctx, held); !errors.Is(err, backend.ErrLost) {
			t.Errorf("stolen: got %v, want ErrLost", err)
		}
		c.Del(ctx, "k")
		if err := b.Renew(ctx, held); !errors.Is(err, backend.ErrLost) {
			t.Errorf("gone: got %v, want ErrLost", err)
		}
		if got := locks(t, c); len(got) != 0 {
			t.Errorf("renewing made %q", got)
		}
	})
}

// Case 35.
func TestReleaseOfAFreeKeyIsNilUntilTheTermEnds(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, s.Client())
		held := mustAcquire(t, b, lease("k", 10*time.Second))
		mustRelease(t, b, held)
		if err := b.Release(t.Context(), held); err != nil {
			t.Errorf("repeated: got %v, want nil", err)
		}
		held.Start = held.Start.Add(-held.TTL)
		if err := b.Release(t.Context(), held); !errors.Is(err, backend.ErrLost) {
			t.Errorf("after the term: got %v, want ErrLost", err)
		}
	})
}

// Case 49.
func TestScriptFlushBetweenAnyTwoCalls(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b, c := newBackend(t, s.Client()), s.Client()
		flush := func() {
			if err := c.ScriptFlush(t.Context()).Err(); err != nil && err != goredis.Nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			flush()
			held := mustAcquire(t, b, lease("k", time.Second))
			flush()
			if err := b.Renew(t.Context(), held); err != nil {
				t.Error(err)
			}
			flush()
			mustRelease(t, b, held)
			if got := b.Lanes(); got != 0 {
				t.Errorf("%d lanes: a script that did not run was taken for one on its way", got)
			}
		}
	})
}
