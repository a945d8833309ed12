package quorum_test

import (
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
