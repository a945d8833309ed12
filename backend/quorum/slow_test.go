package quorum_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Nodes that answer, but more slowly than the key changes hands, are left out
// of attempts: neither goroutines nor the time of Close grow with the cycles.
func TestSlowMinorityCostsNothing(t *testing.T) {
	for slow := 1; slow <= 2; slow++ {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(0, 0, 0, 0, 0)
				var asked atomic.Int64
				q := c.client(t, nil, func(node int, _ string, _ backend.Lease) fate {
					if node < slow {
						asked.Add(1)
						return fate{there: 30 * ms, back: 30 * ms}
					}
					return fate{there: ms / 2, back: ms / 2}
				})
				before := runtime.NumGoroutine()
				const cycles = 3000
				begun := time.Now()
				for i := range cycles {
					got := mustAcquire(t, q, fmt.Sprint(i))
					if err := q.Release(t.Context(), got); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(begun) / cycles; took > 2*ms {
					t.Errorf("a cycle took %v, want 2ms as with healthy nodes", took)
				}
				if n := runtime.NumGoroutine() - before; n > 400 {
					t.Errorf("%d goroutines pile up", n)
				}
				if n := asked.Load(); n == 0 || n > 2*cycles/10 {
					t.Errorf("%d messages to slow nodes in %d cycles", n, cycles)
				}
				begun = time.Now()
				if err := q.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > 3*time.Second {
					t.Errorf("Close took %v", took)
				}
				if n := c.keys(); n != 0 {
					t.Errorf("%d nodes hold a key, want none: %v", n, c.owners())
				}
			})
		})
	}
}

// An owner that a slow node was left out for may get it by a refill, and is
// released there then.
func TestNodeThatWasLeftOutIsReleasedAfterARefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0)
		var pause atomic.Int64
		pause.Store(int64(30 * ms))
		q := c.client(t, nil, func(node int, _ string, _ backend.Lease) fate {
			if node == 0 {
				return fate{there: time.Duration(pause.Load())}
			}
			return fate{there: ms}
		})
		var got backend.Lease
		for i := range 100 {
			got = mustAcquire(t, q, fmt.Sprint(i))
			if i < 99 {
				if err := q.Release(t.Context(), got); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(2 * time.Second) // the node catches up
		pause.Store(int64(ms))
		if c[0].held() != "" {
			t.Fatal("the slow node was not left out")
		}
		got.Start = time.Now()
		if err := q.Renew(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * ms)
		if c[0].held() != got.Owner {
			t.Fatal("the node was not given the key by the renewal")
		}
		if err := q.Release(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * ms)
		if n := c.keys(); n != 0 {
			t.Errorf("%d nodes hold a key, want none: %v", n, c.owners())
		}
	})
}
