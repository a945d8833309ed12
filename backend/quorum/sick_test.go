package quorum_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

// One frozen node, and then two of five, cost no time, and neither goroutines
// nor messages that grow with the number of cycles.
func TestFrozenMinorityCostsNothing(t *testing.T) {
	for frozen := 1; frozen <= 2; frozen++ {
		t.Run(fmt.Sprint(frozen), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(0, 0, 0, 0, 0)
				q, f := frozenQuorum(t, c)
				before := runtime.NumGoroutine()
				f.freeze([]int{1, 3}[:frozen]...)
				const cycles = 5000
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
				if n := f.asked.Load(); n > 400 {
					t.Errorf("%d messages to frozen nodes in %d cycles", n, cycles)
				}
				if n := runtime.NumGoroutine() - before; n > 400 {
					t.Errorf("%d goroutines pile up", n)
				}
				f.thaw()
				time.Sleep(3 * time.Second)
				if n := c.keys(); n != 0 {
					t.Errorf("%d nodes hold a key after the thaw, want none: %v", n, c.owners())
				}
				if err := q.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A hold that a node took before it froze is released there when it thaws, not
// a whole term later.
func TestReleaseIsOwedToAFrozenNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0)
		q, f := frozenQuorum(t, c)
		got := mustAcquire(t, q, "a")
		time.Sleep(10 * ms)
		f.freeze(2)
		for i := range 3 { // long enough to be set aside
			time.Sleep(200 * ms)
			if err := q.Renew(t.Context(), got); err != nil {
				t.Fatal(i, err)
			}
		}
		if err := q.Release(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		if c.keys() != 1 {
			t.Fatalf("%d keys while the node is frozen, want its own", c.keys())
		}
		f.thaw()
		time.Sleep(2 * time.Second)
		if n := c.keys(); n != 0 {
			t.Errorf("%d nodes hold a key 2 s after the thaw, want none", n)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// OnNode is told once when a node is set aside and once when it is back.
func TestNodeStateIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &freezer{}
		var nodes []backend.Backend
		for i, s := range newCluster(0, 0, 0) {
			nodes = append(nodes, f.wrap(i, s))
		}
		var mu sync.Mutex
		var told []string
		q, err := quorum.New(nodes, &quorum.Options{OnNode: func(s backend.NodeState) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprint(s.Name, " ", s.Aside))
		}})
		if err != nil {
			t.Fatal(err)
		}
		cycle := func(n int) {
			for range n {
				got := mustAcquire(t, q, fmt.Sprint(time.Now().UnixNano()))
				if err := q.Release(t.Context(), got); err != nil {
					t.Fatal(err)
				}
			}
		}
		cycle(10)
		f.freeze(1)
		cycle(500)
		f.thaw()
		time.Sleep(time.Second)
		cycle(10)
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got, want := fmt.Sprint(told), "[node 1 true node 1 false]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	})
}

// When a majority is frozen, everything fails, within a bound and as unknown;
// after the thaw all goes on.
func TestFrozenMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0)
		q, f := frozenQuorum(t, c)
		f.freeze(0, 1)
		for i := range 5 {
			want := lease(fmt.Sprint("a", i))
			begun := time.Now()
			_, err := q.Acquire(t.Context(), want)
			var failed *backend.QuorumError
			if !errors.As(err, &failed) || failed.Verdict != nil {
				t.Errorf("got %v, want an unknown outcome", err)
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("failing took %v", took)
			}
			q.Release(t.Context(), want)
		}
		f.thaw()
		time.Sleep(2 * time.Second)
		mustAcquire(t, q, "b")
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Case 12: contenders that split the nodes all get through.
func TestSplitVotesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const contenders = 20
		c := newCluster(0, 0, 0, 0, 0)
		begun := time.Now()
		var all sync.WaitGroup
		for id := range contenders {
			q := c.client(t, nil, func(node int, _ string, _ backend.Lease) fate {
				d := time.Duration((node*7+id*3)%5+1) * 200 * time.Microsecond
				return fate{there: d, back: d}
			})
			all.Go(func() { queueUp(t, q, id) })
		}
		all.Wait()
		t.Logf("%d contenders took %v", contenders, time.Since(begun))
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%d contenders took %v", contenders, took)
		}
	})
}

func queueUp(t *testing.T, q *quorum.Backend, id int) {
	ticket := ""
	for n := 0; ; n++ {
		want := lease(fmt.Sprint(id, "-", n))
		want.Ticket = ticket
		got, err := q.Acquire(t.Context(), want)
		if err == nil {
			if err := q.Release(t.Context(), got); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, backend.ErrHeld) {
			t.Error(err)
			return
		}
		want = lease(fmt.Sprint(id, "+", n))
		want.Ticket = ticket
		hint, err := q.Wait(t.Context(), want)
		if err != nil {
			t.Error(err)
			return
		}
		ticket = hint.Ticket
	}
}
