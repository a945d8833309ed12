package redis_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// A primary dies with one lock that its replica has, and one that it has not.
func TestClusterFailover(t *testing.T) {
	clusters(t, 3, 1, func(t *testing.T, c *redistest.Cluster) {
		primary, replica := c.Masters[0], c.Replicas[0]
		key := keyOn(t, c, primary)
		forgets(t, overCluster(t, c), "{"+key+"}kept", "{"+key+"}lost", primary, replica, func() {
			c.Hurry()
			eventually(t, "the replica has the slots", func() bool {
				for _, s := range []*redistest.Server{c.Masters[1], c.Masters[2], replica} {
					if owner := c.OwnerBy(s, key); owner != replica {
						return false
					}
				}
				return true
			})
		})
	})
}

// forgets checks what becomes of two locks when their primary dies: one that the
// replica was told of, and one that it was not. The latter is lost, its holder
// hears of it, and its tokens go on all the same: the clock is their floor.
func forgets(t *testing.T, b *redis.Backend, kept, lost string, primary, replica *redistest.Server, failover func()) {
	ctx := t.Context()
	keeps := mustAcquire(t, b, lease(kept, 30*time.Second))
	eventually(t, "the replica has it", func() bool { return slices.Contains(locks(t, replica.Client()), kept) })
	replica.Freeze()
	if err := primary.Client().ClientKillByFilter(ctx, "type", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	loses := mustAcquire(t, b, lease(lost, 30*time.Second))
	primary.Kill()
	replica.Thaw()
	failover()

	if err := insist(t, func() error { return b.Renew(ctx, keeps) }); err != nil {
		t.Errorf("renew what was replicated: %v", err)
	}
	if err := insist(t, func() error { return b.Renew(ctx, loses) }); !errors.Is(err, backend.ErrLost) {
		t.Errorf("renew what was lost: got %v, want ErrLost", err)
	}
	if err := b.Release(ctx, loses); err != nil {
		t.Errorf("release what was lost, before its end: %v", err)
	}
	next := lease(lost, time.Second)
	next = mustInsist(t, b, next)
	if next.Token <= loses.Token {
		t.Errorf("token %d came after %d, which was forgotten", next.Token, loses.Token)
	}
	if _, err := b.Acquire(ctx, lease(kept, time.Second)); !errors.Is(err, backend.ErrHeld) {
		t.Errorf("what is still held: got %v, want ErrHeld", err)
	}
	mustRelease(t, b, keeps)
	if after := mustInsist(t, b, lease(kept, time.Second)); after.Token <= keeps.Token {
		t.Errorf("token %d came after %d", after.Token, keeps.Token)
	}
}
