package quorum_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// held is a lease of "a" on the nodes 0 to 2 of five, of a client whose messages
// go by route from then on.
func held(t *testing.T, c cluster, route func(node int) fate) (q backend.Backend, got backend.Lease) {
	t.Helper()
	var told atomic.Bool
	q = c.client(t, nil, func(node int, op string, l backend.Lease) fate {
		if told.Load() {
			return route(node)
		}
		return only(0, 1, 2)(node, op, l)
	})
	got = mustAcquire(t, q, "a")
	time.Sleep(time.Second) // what was lost is given up
	told.Store(true)
	return q, got
}

// others makes the key another's on these nodes.
func others(c cluster) {
	for _, s := range c {
		s.mu.Lock()
		s.owner, s.ends = "other", time.Now().Add(time.Minute)
		s.mu.Unlock()
	}
}

// A minority that is another's and a reply that is lost are no majority against
// the holder: its second call is of unknown outcome, and takes nothing away.
func TestHolderIsRefusedByAMajorityOnly(t *testing.T) {
	for name, floor := range map[string]backend.Token{"repeat": 0, "raise": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(0, 0, 0, 0, 0)
				q, got := held(t, c, func(node int) fate { return fate{there: ms, mute: node == 2} })
				others(c[3:])
				again := got
				again.Token = floor
				if _, err := q.Acquire(t.Context(), again); err == nil || errors.Is(err, backend.ErrHeld) {
					t.Errorf("got %v, want an unknown outcome", err)
				}
				time.Sleep(time.Second)
				for i, s := range c[:3] {
					if s.held() != got.Owner {
						t.Errorf("the key was taken from the holder on node %d", i)
					}
				}
				if err := q.Release(context.Background(), got); err != nil && errors.Is(err, backend.ErrLost) {
					t.Error(err)
				}
			})
		})
	}
}

func TestHolderIsRefusedByAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0, 0, 0)
		q, got := held(t, c, func(int) fate { return fate{there: ms} })
		others(c[2:])
		if _, err := q.Acquire(t.Context(), got); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("got %v, want ErrHeld", err)
		}
	})
}

// Nodes that come to the holder later stand above its token. Where no majority
// can be had without them, the token that it was told does not move.
func TestToldTokenDoesNotMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0, 7, 7)
		q, got := held(t, c, func(node int) fate { return fate{there: ms, mute: node < 2} })
		if again, err := q.Acquire(t.Context(), got); err == nil && again.Token != got.Token {
			t.Errorf("token %d, then %d", got.Token, again.Token)
		}
		time.Sleep(time.Second)
		c2 := c.client(t, nil, nil)
		if _, err := c2.Acquire(t.Context(), lease("b")); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("got %v for another, want ErrHeld", err)
		}
	})
}
