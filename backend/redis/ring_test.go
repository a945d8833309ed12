package redis_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// The servers of a Ring know nothing of each other.
func TestRingAsOneNode(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		servers := redistest.Start(t, f, 2)
		conformOf(t, 1, f, func(t testing.TB) *redis.Backend { return over(t, ringOf(servers, time.Minute)) })
		ring := ringOf(servers, time.Minute)
		b, other := over(t, ring), over(t, ringOf(servers, time.Minute))
		for _, s := range servers {
			wakes(t, b, other, keyOnShard(t, ring, s))
		}
	})
}

func TestRingThatIsDown(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		ring := ringOf([]*redistest.Server{s}, 10*time.Millisecond)
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

// One server of three dies. Its keys are another's then, also those that are
// held: the weakness of a Ring. The holder hears of it, tokens rise all the same,
// and what the other servers have is not touched. When it comes back, empty, its
// keys are its own again.
func TestRingOneServerOfWhichIsDown(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		servers, ctx := redistest.Start(t, f, 3), t.Context()
		ring := ringOf(servers, 20*time.Millisecond)
		b, other := over(t, ring), over(t, ringOf(servers, 20*time.Millisecond))
		key, elsewhere := keyOnShard(t, ring, servers[0]), keyOnShard(t, ring, servers[1])
		loses := mustAcquire(t, b, lease(key, 30*time.Second))
		keeps := mustAcquire(t, b, lease(elsewhere, 30*time.Second))

		servers[0].Kill()
		next := mustInsist(t, other, lease(key, 30*time.Second))
		if !time.Now().Before(loses.Until()) {
			t.Fatal("it took so long that the test shows nothing")
		}
		if next.Token <= loses.Token {
			t.Errorf("token %d came after %d, which was forgotten", next.Token, loses.Token)
		}
		if err := insist(t, func() error { return b.Renew(ctx, loses) }); !errors.Is(err, backend.ErrLost) {
			t.Errorf("renew what was lost: got %v, want ErrLost", err)
		}
		if err := b.Renew(ctx, keeps); err != nil {
			t.Errorf("renew what another server has: %v", err)
		}
		mustRelease(t, other, next)
		wakes(t, b, other, key)

		servers[0].Restart()
		eventually(t, "the ring is whole", func() bool { return ring.Len() == 3 })
		eventually(t, "the server has its keys again", func() bool {
			got := mustInsist(t, b, lease(key, 30*time.Second))
			defer mustRelease(t, b, got)
			if got.Token <= next.Token {
				t.Errorf("token %d came after %d", got.Token, next.Token)
			}
			return slices.Contains(locks(t, servers[0].Client()), key)
		})
		if _, err := other.Acquire(ctx, lease(elsewhere, time.Second)); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("what is still held: got %v, want ErrHeld", err)
		}
		mustRelease(t, b, keeps)
	})
}

func ringOf(servers []*redistest.Server, heartbeat time.Duration) *goredis.Ring {
	addrs := map[string]string{}
	for _, s := range servers {
		addrs[s.Addr] = s.Addr
	}
	return goredis.NewRing(&goredis.RingOptions{Addrs: addrs, HeartbeatFrequency: heartbeat})
}

func keyOnShard(t *testing.T, ring *goredis.Ring, s *redistest.Server) string {
	t.Helper()
	for i := range 1000 {
		key := fmt.Sprint("key", i)
		if shard, err := ring.GetShardClientForKey(key); err == nil && shard.Options().Addr == s.Addr {
			return key
		}
	}
	t.Fatalf("no key on %s", s.Addr)
	return ""
}
