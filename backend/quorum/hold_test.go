package quorum_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
)

// Case 7: a hold of a bare majority is filled up by its renewals. Then any
// minority may forget it, and a second client gets no majority.
func TestHoldOfABareMajorityIsFilledUp(t *testing.T) {
	for _, away := range [][]int{{3, 4}, {0, 1}, {1, 3}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(0, 0, 0, 0, 0)
			var back atomic.Bool
			q := c.client(t, nil, func(node int, _ string, _ backend.Lease) fate {
				return fate{there: ms, lost: slices.Contains(away, node) && !back.Load()}
			})
			held := mustAcquire(t, q, "a")
			time.Sleep(2 * time.Second)
			if n := c.keys(); n != 3 {
				t.Fatalf("%d nodes hold the key, want 3", n)
			}
			back.Store(true)
			for range 2 { // the first may be the probe of a node that was set aside
				held.Start = time.Now()
				if err := q.Renew(t.Context(), held); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			if n := c.keys(); n != 5 {
				t.Errorf("%v were away: %d nodes hold the key after two renewals, want 5", away, n)
			}
			c[0].wipe()
			c[2].wipe()
			if _, err := c.client(t, nil, nil).Acquire(t.Context(), lease("b")); !errors.Is(err, backend.ErrHeld) {
				t.Errorf("%v were away, two others forgot: got %v for a second client, want ErrHeld", away, err)
			}
		})
	}
}

// Case 23: a renewal that fails takes nothing back.
func TestFailedRenewalReleasesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0)
		var down atomic.Bool
		var releases atomic.Int32
		q := c.client(t, nil, func(node int, op string, _ backend.Lease) fate {
			if op == "release" {
				releases.Add(1)
			}
			return fate{there: ms, lost: down.Load() && node > 0}
		})
		held := mustAcquire(t, q, "a")
		down.Store(true)
		for range 2 {
			if err := q.Renew(t.Context(), held); err == nil || errors.Is(err, backend.ErrLost) {
				t.Errorf("got %v, want an unknown outcome", err)
			}
		}
		time.Sleep(time.Second)
		if n := c.keys(); n != 3 || releases.Load() != 0 {
			t.Errorf("%d nodes hold the key after %d releases, want 3 and none", n, releases.Load())
		}
		down.Store(false)
		if err := q.Renew(t.Context(), held); err != nil {
			t.Errorf("the hold was valid: %v", err)
		}
	})
}

// Case 13: each node is asked exactly once, however many ask at the same time and
// whatever the caller does with its slice of nodes.
func TestEachNodeIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		var nodes []backend.Backend
		for i := range 5 {
			nodes = append(nodes, &link{to: memory.New(nil), fate: func(op string, l backend.Lease) fate {
				mu.Lock()
				defer mu.Unlock()
				if op == "acquire" && l.Token == 0 { // else a raise
					asked[fmt.Sprint(l.Owner, " of node ", i)]++
				}
				return fate{there: time.Duration(rand.N(5)) * ms}
			}})
		}
		q, err := quorum.New(nodes, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				want := lease(fmt.Sprint("attempt ", i))
				want.Key = fmt.Sprint("k", i)
				if _, err := q.Acquire(t.Context(), want); err != nil {
					t.Error(err)
				}
			})
			rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		}
		clear(nodes)
		all.Wait()
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for i := range 50 {
			for node := range 5 {
				if n := asked[fmt.Sprint("attempt ", i, " of node ", node)]; n != 1 {
					t.Errorf("node %d was asked %d times by one attempt", node, n)
				}
			}
		}
	})
}

// Case 48: a quorum remembers nothing of names that nobody holds, whether they
// were released, or their holders just ended.
func TestNothingIsRememberedOfManyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := quorum.New([]backend.Backend{memory.New(nil), memory.New(nil), memory.New(nil)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for i := range 6000 {
			l := backend.Lease{Key: fmt.Sprint("name ", i), Owner: fmt.Sprint("o", i), TTL: time.Second, Start: time.Now()}
			held, err := q.Acquire(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(ms)
			if i%2 == 0 {
				if err := q.Release(t.Context(), held); err != nil {
					t.Fatal(err)
				}
			}
			most = max(most, q.Remembered())
		}
		t.Logf("at most %d", most)
		if most > 2000 { // 500 are held at a time
			t.Errorf("as much as %d is remembered", most)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Case 37: a release that did not reach a node, before anybody knew that it was
// dead, is made up for when it is back, and not a whole term later.
func TestReleaseThatANodeMissedIsMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0)
		var dead atomic.Bool
		q := c.client(t, nil, func(node int, _ string, _ backend.Lease) fate {
			return fate{there: ms, lost: node == 2 && dead.Load()}
		})
		held := mustAcquire(t, q, "a")
		time.Sleep(time.Second)
		dead.Store(true)
		if err := q.Release(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if n := c.keys(); n != 1 {
			t.Fatalf("%d nodes hold the key, want the dead one", n)
		}
		dead.Store(false)
		time.Sleep(2 * time.Second)
		if n := c.keys(); n != 0 {
			t.Errorf("%d nodes hold the key 2 s after the node is back, want none", n)
		}
	})
}
