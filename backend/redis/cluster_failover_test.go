package redis_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

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

// The servers of a Ring know nothing of each other.
func TestRingAsOneNode(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		servers := redistest.Start(t, f, 2)
		conformOf(t, f, func(t testing.TB) *redis.Backend { return over(t, ringOf(servers)) })
		ring := ringOf(servers)
		b, other := over(t, ring), over(t, ringOf(servers))
		for _, s := range servers {
			wakes(t, b, other, keyOnShard(t, ring, s))
		}
	})
}

func TestRingThatIsDown(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		ring := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"only": s.Addr}, HeartbeatFrequency: 10 * time.Millisecond, MaxRetries: -1})
		b := over(t, ring)
		held := mustAcquire(t, b, lease("k", time.Second))
		s.Kill()
		eventually(t, "the ring knows that it is down", func() bool { return ring.Len() == 0 })
		for op, call := range verbs(b, held) {
			if err := call(t.Context()); err == nil || errors.Is(err, backend.ErrHeld) || errors.Is(err, backend.ErrLost) {
				t.Errorf("%s: got %v, want an unknown outcome", op, err)
			}
		}
	})
}

func ringOf(servers []*redistest.Server) *goredis.Ring {
	addrs := map[string]string{}
	for _, s := range servers {
		addrs[s.Addr] = s.Addr
	}
	return goredis.NewRing(&goredis.RingOptions{Addrs: addrs, HeartbeatFrequency: time.Minute})
}

func keyOnShard(t *testing.T, ring *goredis.Ring, s *redistest.Server) string {
	t.Helper()
	for key := range slices.Values([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}) {
		if shard, err := ring.GetShardClientForKey(key); err == nil && shard.Options().Addr == s.Addr {
			return key
		}
	}
	t.Fatalf("no key on %s", s.Addr)
	return ""
}
