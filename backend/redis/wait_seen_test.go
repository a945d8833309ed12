package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// A Wait that its context ends says that another was seen to hold the key, however
// it waited.
func TestWaitThatEndsSaysWhetherTheKeyWasHeld(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		of := func(o redis.Options) *redis.Backend { return silent(t, s.Client(), o) }
		queues := of(redis.Options{})
		queues.StandInQueues()
		mustAcquire(t, of(redis.Options{}), lease("k", 20*time.Second))
		for name, b := range map[string]*redis.Backend{
			"line": of(redis.Options{}), "hint": of(redis.Options{Unordered: true}), "plain": of(redis.Options{Plain: true}), "queue": queues,
		} {
			want := lease("k", 20*time.Second)
			if name == "queue" {
				want.Ticket = "0000000000000001"
			}
			sayHeld(t, name, b, want)
		}
	})
}

// So does one on a quorum.
func TestWaitOnAQuorumSaysWhetherTheKeyWasHeld(t *testing.T) {
	crowds(t, func(c *crowd) {
		mustAcquire(c.t, c.clients[0], lease("k", queueTerm))
		sayHeld(c.t, "quorum", c.clients[1], lease("k", queueTerm))
	})
}

func sayHeld(t *testing.T, name string, b interface {
	backend.Backend
	backend.Waiter
}, want backend.Lease) {
	t.Helper()
	for range 100 { // a hint may come for no reason
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		got, err := b.Wait(ctx, want)
		cancel()
		if err == nil {
			continue
		}
		if !errors.Is(err, context.DeadlineExceeded) || got.Key != want.Key {
			t.Errorf("%s: %q, %v; want the key and the end of the context", name, got.Key, err)
		}
		if err := b.Release(t.Context(), want); err != nil {
			t.Errorf("%s: release: %v", name, err)
		}
		return
	}
	t.Errorf("%s: no Wait lasted for 300 ms", name)
}
