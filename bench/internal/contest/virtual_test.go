package contest

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/mutex"
)

// far is a backend at the end of a network: half of a round trip away.
type far struct {
	backend.Backend
	half  time.Duration
	calls *atomic.Int64
}

// trip makes one call of a verb.
func trip[T any](ctx context.Context, f far, verb func() (T, error)) (T, error) {
	var none T
	f.calls.Add(1)
	if !sleep(ctx, f.half) {
		return none, ctx.Err()
	}
	got, err := verb()
	if !sleep(ctx, f.half) {
		return none, ctx.Err()
	}
	return got, err
}

func (f far) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	return trip(ctx, f, func() (backend.Lease, error) { return f.Backend.Acquire(ctx, want) })
}

func (f far) Renew(ctx context.Context, held backend.Lease) error {
	_, err := trip(ctx, f, func() (struct{}, error) { return struct{}{}, f.Backend.Renew(ctx, held) })
	return err
}

func (f far) Release(ctx context.Context, held backend.Lease) error {
	_, err := trip(ctx, f, func() (struct{}, error) { return struct{}{}, f.Backend.Release(ctx, held) })
	return err
}

// news is far with waiting: the server keeps a line, and tells its head.
type news struct{ far }

func (f news) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	w := f.Backend.(backend.Waiter)
	return trip(ctx, f.far, func() (backend.Lease, error) { return w.Wait(ctx, want) })
}

// nodesAt makes a quorum of nodes with these round trips. It is for a bubble.
func nodesAt(t *testing.T, calls *atomic.Int64, trips ...time.Duration) *quorum.Backend {
	var nodes []backend.Backend
	for _, d := range trips {
		nodes = append(nodes, &far{memory.New(nil), d / 2, calls})
	}
	return quorumOf(t, nodes)
}

// quorumOf makes a quorum that ends with the bubble.
func quorumOf(t *testing.T, nodes []backend.Backend) *quorum.Backend {
	q, err := quorum.New(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return q
}

func same(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

// A quorum's Lock and Unlock take a round trip each, to the farthest node of the
// nearest majority, whatever is beyond it.
func TestQuorumCostsTwoTripsToItsMajority(t *testing.T) {
	const ms = time.Millisecond
	cases := map[string][]time.Duration{
		"region-wide, 5 nodes": {1 * ms, 1 * ms, 2 * ms, 3 * ms, 3 * ms},
		"world-wide, 5 nodes":  {2 * ms, 70 * ms, 90 * ms, 150 * ms, 220 * ms},
	}
	for _, d := range []time.Duration{1 * ms, 50 * ms} {
		for _, n := range []int{3, 5, 7, 9} {
			cases[fmt.Sprintf("%d nodes at %v", n, d)] = same(n, d)
		}
	}
	for name, trips := range cases {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				m, err := mutex.New(nodesAt(t, &calls, trips...), "k", nil)
				if err != nil {
					t.Fatal(err)
				}
				const cycles = 50
				began := time.Now()
				for range cycles {
					if err := m.Lock(t.Context()); err != nil {
						t.Fatal(err)
					}
					if err := m.Unlock(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				took := time.Since(began) / cycles
				t.Logf("%s: %v a cycle, %.1f calls of nodes", name, took, float64(calls.Load())/cycles)
				if want := 2 * slices.Sorted(slices.Values(trips))[len(trips)/2]; took != want {
					t.Errorf("a cycle takes %v, want %v", took, want)
				}
			})
		})
	}
}

var lineLength = flag.Int("waiters", 1000, "how many wait in the line of one server")

// Many processes wait in the line of one server. Each has the lock once, and a
// hand-over costs a round trip at most: the release there and the news back.
func TestHandOverInALineCostsOneTrip(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				server := news{far{memory.New(nil), d / 2, &calls}}
				took := crowd(t, *lineLength, func() backend.Backend { return server })
				each := took / time.Duration(*lineLength)
				t.Logf("%d waiters, round trip %v: %v each, %.2f calls", *lineLength, d, each, float64(calls.Load())/float64(*lineLength))
				if each > d+d/10 {
					t.Errorf("a hand-over takes %v, more than a round trip of %v", each, d)
				}
			})
		})
	}
}

// Processes that contend for a quorum all get the lock, whatever that costs.
func TestContendedQuorum(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
		for _, n := range []int{3, 5, 9} {
			t.Run(fmt.Sprintf("%d_nodes_at_%v", n, d), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const waiters = 16
					var calls atomic.Int64
					var nodes []backend.Backend
					for range n {
						nodes = append(nodes, &news{far{memory.New(nil), d / 2, &calls}})
					}
					took := crowd(t, waiters, func() backend.Backend { return quorumOf(t, nodes) })
					t.Logf("%d waiters, %d nodes, round trip %v: %v each, %.0f calls of nodes",
						waiters, n, d, took/waiters, float64(calls.Load())/waiters)
				})
			})
		}
	}
}

// crowd has n processes lock and unlock one key once, and returns how long all
// of that took.
func crowd(t *testing.T, n int, open func() backend.Backend) time.Duration {
	var inside, served atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range n {
		m, err := mutex.New(open(), "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := m.Lock(t.Context()); err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) != 1 {
				t.Error("two hold the lock")
			}
			inside.Add(-1)
			served.Add(1)
			if err := m.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if served.Load() != int64(n) {
		t.Errorf("%d of %d had the lock", served.Load(), n)
	}
	return took
}
