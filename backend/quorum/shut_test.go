package quorum_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

// A refill that comes too late is released, and nothing acquires with its owner on
// that node again: the release may still be on its way.
func TestNodeIsNotRefilledAfterItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []string // to node 2
		c := newCluster(0, 0, 0)
		q := c.client(t, &quorum.Options{NodeTimeout: 20 * time.Second}, func(node int, op string, _ backend.Lease) fate {
			mu.Lock()
			defer mu.Unlock()
			if node != 2 {
				return fate{there: ms}
			}
			sent = append(sent, op)
			if op == "acquire" && len(sent) > 1 {
				return fate{there: 9 * time.Second} // beyond the term of the renewal that it belongs to
			}
			return fate{there: ms}
		})
		held := mustAcquire(t, q, "a")
		time.Sleep(10 * ms)
		c[2].wipe()
		for range 8 {
			time.Sleep(3 * time.Second)
			held.Start = time.Now()
			if err := q.Renew(t.Context(), held); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		released := slices.Index(sent, "release")
		if released < 0 {
			t.Fatalf("the late refill was not released: %v", sent)
		}
		if slices.Contains(sent[released:], "acquire") {
			t.Errorf("node 2 was asked to acquire after its release: %v", sent)
		}
	})
}

// Nor does what a renewal finds there count: the release takes it when it arrives.
func TestNodeDoesNotCountWhileItsReleaseMayComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow, often = 240 * ms, 120 * ms // so the calls to node 2 come ever later
		var mu sync.Mutex
		sent := make(map[string]int)
		c := newCluster(0, 0, 0)
		q := c.client(t, &quorum.Options{NodeTimeout: 2 * time.Second}, func(node int, op string, _ backend.Lease) fate {
			mu.Lock()
			defer mu.Unlock()
			if node != 2 {
				return fate{there: ms}
			}
			sent[op]++
			switch {
			case op == "release":
				return fate{lost: true}
			case sent["release"] > 0 || sent["renew"] == 0:
				return fate{there: ms}
			case op == "renew" && sent["renew"] == 64:
				c[2].wipe()
			}
			return fate{there: slow}
		})
		held := mustAcquire(t, q, "a")
		renew := func() error {
			time.Sleep(often)
			held.Start = time.Now()
			return q.Renew(t.Context(), held)
		}
		for range 150 {
			if err := renew(); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		asked := maps.Clone(sent)
		mu.Unlock()
		if c[2].held() != "a" || asked["release"] == 0 {
			t.Fatalf("node 2 was asked %v and is held by %q: want a refill that came too late", asked, c[2].held())
		}
		c[1].wipe()
		for range 30 {
			if err := renew(); err == nil {
				t.Fatal("renewed on two nodes of three, one of which is about to be released")
			}
		}
	})
}

// Where a node does not count, one that was set aside is asked, though it is not
// yet time for a probe: else fewer than a majority would be.
func TestNodeSetAsideIsAskedWhereAnotherDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, nodes, _ := doubt(t, 3)
		well := nodes[0].Backend
		nodes[0].Backend = away{}
		nodes[2].set(&quorum.UncountedError{Reason: quorum.Recovering}, 0)
		for i := range 5 {
			if _, err := q.Acquire(t.Context(), lease(string(rune('a'+i)))); err == nil {
				t.Fatal("one node of three granted a lease")
			}
			time.Sleep(200 * ms)
		}
		_, _ = q.Acquire(t.Context(), lease("probe"))
		nodes[0].Backend = well
		for _, owner := range []string{"a", "b", "c", "d", "e", "probe"} {
			_ = q.Release(t.Context(), lease(owner))
		}
		if _, err := q.Acquire(t.Context(), lease("z")); err != nil {
			t.Errorf("two of three nodes are well: %v", err)
		}
	})
}
