package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
)

// queueing is a node that tells of its clock, and a waiter of which hints after a
// while. It notes which tickets it is shown.
type queueing struct {
	backend.Backend
	ahead   time.Duration
	unknown bool
	hints   time.Duration // zero: never
	wakes   bool          // all, and does not queue

	mu    sync.Mutex
	shown []string
}

func (n *queueing) Clock() (ahead, within time.Duration, ok bool) {
	return n.ahead, 10 * time.Millisecond, !n.unknown
}

func (n *queueing) Queues() bool { return !n.wakes }

func (n *queueing) note(verb, ticket string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shown = append(n.shown, verb+" "+ticket)
}

// tickets are those that a verb was shown.
func (n *queueing) tickets(verb string) (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.shown {
		if ticket, ok := strings.CutPrefix(s, verb+" "); ok {
			all = append(all, ticket)
		}
	}
	return all
}

func (n *queueing) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	n.note("acquire", want.Ticket)
	return n.Backend.Acquire(ctx, want)
}

func (n *queueing) Release(ctx context.Context, held backend.Lease) error {
	n.note("release", held.Ticket)
	return n.Backend.Release(ctx, held)
}

func (n *queueing) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	n.note("wait", want.Ticket)
	if n.hints == 0 {
		<-ctx.Done()
		return backend.Lease{}, ctx.Err()
	}
	select {
	case <-time.After(n.hints):
		return backend.Lease{}, nil
	case <-ctx.Done():
		return backend.Lease{}, ctx.Err()
	}
}

// queueOf is a quorum of these nodes.
func queueOf(t *testing.T, nodes ...*queueing) *quorum.Backend {
	t.Helper()
	var all []backend.Backend
	for _, n := range nodes {
		n.Backend = memory.New(nil)
		all = append(all, n)
	}
	q, err := quorum.New(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func hour(n int) time.Duration { return time.Duration(n) * time.Hour }

// A ticket is by the median of the clocks of the nodes.
func TestTicketIsByTheMedianOfTheClocks(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes []*queueing
		ahead time.Duration
		none  bool
	}{
		{"all known", []*queueing{{ahead: hour(-9)}, {ahead: hour(2)}, {ahead: hour(1)}, {ahead: hour(8)}, {ahead: hour(-1)}}, hour(1), false},
		{"a majority", []*queueing{{ahead: hour(-9)}, {ahead: hour(2)}, {ahead: hour(1)}, {unknown: true}, {unknown: true}}, hour(1), false},
		{"too few queues", []*queueing{{ahead: hour(-9)}, {ahead: hour(2)}, {wakes: true}, {wakes: true}, {wakes: true}}, 0, true},
		{"too few clocks", []*queueing{{ahead: hour(-9)}, {ahead: hour(2)}, {unknown: true}, {unknown: true}, {unknown: true}}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := queueOf(t, c.nodes...)
				time.Sleep(time.Minute)
				now := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := q.Wait(ctx, lease("one")); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				for i, n := range c.nodes {
					got := n.tickets("wait")
					switch want := fmt.Sprint(now.Add(c.ahead).UnixMicro(), "-"); {
					case len(got) != 1:
						t.Errorf("node %d was asked %d times", i, len(got))
					case c.none && got[0] != "", !c.none && !strings.HasPrefix(got[0], want):
						t.Errorf("node %d was shown %q, want %q…", i, got[0], want)
					}
				}
			})
		})
	}
}

// One caller has one ticket, through all of its attempts, and no two have the same.
// What an attempt gives back is released without it, so the place stays; a caller's
// Release shows it, told of it or not.
func TestTicketIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := []*queueing{{hints: ms}, {hints: ms}, {hints: ms}}
		q := queueOf(t, nodes...)
		for _, n := range nodes[:2] { // another's, so an attempt is refused
			if _, err := n.Backend.Acquire(t.Context(), lease("another")); err != nil {
				t.Fatal(err)
			}
		}
		first := lease("first")
		hint, err := q.Wait(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		first.Ticket = hint.Ticket
		if _, err := q.Acquire(t.Context(), first); !errors.Is(err, backend.ErrHeld) {
			t.Fatal(err)
		}
		second := lease("second")
		second.Ticket = hint.Ticket
		if hint, err = q.Wait(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if err := q.Release(t.Context(), second); err != nil { // with a ticket that is older
			t.Fatal(err)
		}
		third := lease("third")
		if _, err := q.Wait(t.Context(), third); err != nil {
			t.Fatal(err)
		}
		if err := q.Release(t.Context(), third); err != nil { // without
			t.Fatal(err)
		}
		synctest.Wait()
		n := nodes[2]
		waits, gave := n.tickets("wait"), n.tickets("release")
		if len(waits) != 3 || waits[0] == "" || waits[0] != waits[1] || waits[2] == waits[0] || waits[2] == "" {
			t.Fatalf("Wait showed %q", waits)
		}
		for i, n := range nodes[:2] { // whose refusals decide it; the third may not be asked
			if asked := n.tickets("acquire"); !slices.Equal(asked, waits[:1]) {
				t.Errorf("Acquire showed node %d %q, Wait %q", i, asked, waits)
			}
		}
		if want := []string{"", waits[0], waits[2]}; !slices.Equal(gave, want) {
			t.Errorf("Release showed %q, want %q", gave, want)
		}
		if n := q.Remembered(); n != 0 {
			t.Errorf("%d things are remembered", n)
		}
	})
}

// A place that is never released is forgotten some time.
func TestPlaceIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(t, &queueing{hints: ms})
		if _, err := q.Wait(t.Context(), lease("one")); err != nil {
			t.Fatal(err)
		}
		if q.Remembered() != 1 {
			t.Error("the place is not remembered")
		}
		time.Sleep(2 * time.Minute)
		if n := q.Remembered(); n != 0 {
			t.Errorf("%d things are remembered", n)
		}
	})
}

// A hint says whether its caller stood in a line.
func TestHintHasTheKeyWhereThereIsALine(t *testing.T) {
	for wakes, want := range map[bool]string{true: "", false: lease("one").Key} {
		synctest.Test(t, func(t *testing.T) {
			var nodes []*queueing
			for range 5 {
				nodes = append(nodes, &queueing{hints: ms, wakes: wakes})
			}
			if got, err := queueOf(t, nodes...).Wait(t.Context(), lease("one")); err != nil || got.Key != want {
				t.Errorf("all are woken: %v; got %q (%v), want %q", wakes, got.Key, err, want)
			}
		})
	}
}

// A majority of the nodes has to agree that it is the caller's turn; of fewer, one
// is enough after a moment.
func TestMajoritySaysWhoseTurnItIs(t *testing.T) {
	for _, c := range []struct {
		name        string
		hints       [5]time.Duration
		least, most time.Duration
	}{
		{"all at once", [5]time.Duration{ms, ms, ms, ms, ms}, ms, ms},
		{"a majority", [5]time.Duration{10 * ms, 0, 10*ms + 300*time.Microsecond, 0, 10*ms + 500*time.Microsecond}, 10*ms + 500*time.Microsecond, 10*ms + 500*time.Microsecond},
		{"a minority", [5]time.Duration{10 * ms, 0, 10*ms + 300*time.Microsecond}, 11 * ms, 11*ms + 500*time.Microsecond},
		{"one", [5]time.Duration{3: 10 * ms}, 11 * ms, 11*ms + 500*time.Microsecond},
		{"none", [5]time.Duration{}, time.Second, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var nodes []*queueing
				for _, d := range c.hints {
					nodes = append(nodes, &queueing{hints: d})
				}
				q := queueOf(t, nodes...)
				began := time.Now()
				if _, err := q.Wait(t.Context(), lease("one")); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < c.least || took > c.most {
					t.Errorf("it took %v, want %v to %v", took, c.least, c.most)
				}
			})
		})
	}
}
