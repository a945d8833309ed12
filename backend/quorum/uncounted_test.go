package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
)

// doubtful is a node that may say that it does not count, and what its clock is.
type doubtful struct {
	backend.Backend
	mu    sync.Mutex
	err   error
	clock time.Duration
	known bool
	asked int // who it is
}

func (d *doubtful) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	got, err := d.Backend.Acquire(ctx, want)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return backend.Lease{}, d.err
	}
	return got, err
}

func (d *doubtful) Clock() (ahead, within time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock, 10 * time.Millisecond, d.known
}

func (d *doubtful) Identity(context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if _, gone := d.Backend.(away); gone {
		return "", errAway
	}
	d.known = true
	return "", nil
}

func (d *doubtful) set(err error, clock time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err, d.clock = err, clock
}

// doubt is a quorum of n such nodes, and what OnNode was told.
func doubt(t *testing.T, n int) (*quorum.Backend, []*doubtful, func() string) {
	t.Helper()
	var nodes []*doubtful
	var members []backend.Backend
	for range n {
		d := &doubtful{Backend: memory.New(nil)}
		nodes, members = append(nodes, d), append(members, d)
	}
	var mu sync.Mutex
	var told []string
	q, err := quorum.New(members, &quorum.Options{OnNode: func(s backend.NodeState) {
		mu.Lock()
		defer mu.Unlock()
		word := "in use"
		if s.Aside {
			word = fmt.Sprint("aside: ", s.Err)
		}
		told = append(told, s.Name+" "+word)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return q, nodes, func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		defer func() { told = nil }()
		return fmt.Sprint(told)
	}
}

var recovering = &quorum.UncountedError{Reason: quorum.Recovering, Left: 3 * time.Second}

// One of three does not count: nobody notices but OnNode, once.
func TestMinorityThatDoesNotCountChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, nodes, told := doubt(t, 3)
		nodes[1].set(recovering, 0)
		for i := range 5 {
			held := mustAcquire(t, q, fmt.Sprint(i))
			if err := errors.Join(q.Renew(t.Context(), held), q.Release(t.Context(), held)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if got, want := told(), "[node 1 aside: acquire \"k\" on node 1: does not count for another 3s: it may have forgotten locks]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		if nodes[1].asked < 5 {
			t.Errorf("it was asked %d times who it is: it may be another server by now", nodes[1].asked)
		}
		nodes[1].set(nil, 0)
		held := mustAcquire(t, q, "again")
		if got, want := told(), "[node 1 in use]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		if err := q.Release(t.Context(), held); err != nil {
			t.Error(err)
		}
	})
}

// Two of three do not count: neither what they grant nor what they refuse.
func TestMajorityThatDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, nodes, _ := doubt(t, 3)
		nodes[0].set(recovering, 0)
		nodes[1].set(recovering, 0)
		_, err := q.Acquire(t.Context(), lease("a"))
		var e *quorum.UncountedError
		if !errors.As(err, &e) || e.Left != 3*time.Second || e.ErrorType() != "recovering" || errors.Is(err, backend.ErrHeld) {
			t.Errorf("got %v, want an unknown outcome that says how long", err)
		}
		if err := q.Release(t.Context(), lease("a")); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		// The third is held by another: still not definite.
		if _, err := nodes[2].Backend.Acquire(t.Context(), lease("other")); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Acquire(t.Context(), lease("b")); err == nil || errors.Is(err, backend.ErrHeld) {
			t.Errorf("got %v, want an unknown outcome", err)
		}
		q.Release(t.Context(), lease("b"))
	})
}

// A hold outlives that all its nodes forget it one after the other: renewals
// count on a node that does not count, which gets the key anew.
func TestHoldOutlivesNodesThatForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, nodes, _ := doubt(t, 3)
		held := mustAcquire(t, q, "a")
		for _, n := range nodes {
			synctest.Wait()
			if err := n.Backend.Release(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			n.set(recovering, 0)
			for range 2 {
				held.Start = time.Now()
				if err := q.Renew(t.Context(), held); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		}
		if err := q.Release(t.Context(), held); err != nil {
			t.Error(err)
		}
	})
}

// A node whose clock is ahead of the others' does not count, one that is behind
// does, and two that differ are judged by our own.
func TestClocksThatDiffer(t *testing.T) {
	const hour = time.Hour
	for name, tc := range map[string]struct {
		clocks []time.Duration
		away   []int // nodes that can't be reached
		ok     bool
	}{
		"alike":                      {[]time.Duration{0, 0, 0}, nil, true},
		"all ahead of ours":          {[]time.Duration{hour, hour, hour}, nil, true},
		"a little apart":             {[]time.Duration{0, 20 * time.Millisecond, 0}, []int{2}, true},
		"one ahead":                  {[]time.Duration{0, 0, hour}, nil, true},
		"one ahead, one away":        {[]time.Duration{0, 0, hour}, []int{0}, false},
		"one behind":                 {[]time.Duration{0, 0, -hour}, nil, true},
		"one behind, one away":       {[]time.Duration{0, 0, -hour}, []int{0}, true},
		"two of five ahead":          {[]time.Duration{hour, hour, 0, 0, 0}, nil, true},
		"two of five ahead, one off": {[]time.Duration{hour, hour, 0, 0, 0}, []int{4}, false},
		"two of five behind":         {[]time.Duration{-hour, -hour, 0, 0, 0}, []int{4}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, nodes, _ := doubt(t, len(tc.clocks))
				for i, c := range tc.clocks {
					nodes[i].set(nil, c)
				}
				for _, i := range tc.away {
					nodes[i].Backend = away{}
				}
				held, err := q.Acquire(t.Context(), lease("a"))
				if (err == nil) != tc.ok {
					t.Fatalf("got %v, want success: %v", err, tc.ok)
				}
				var e *quorum.UncountedError
				if err != nil && (!errors.As(err, &e) || e.Reason != quorum.ClockAhead) {
					t.Errorf("got %v, want to be told of a clock", err)
				}
				if err == nil {
					err = q.Release(t.Context(), held)
				} else {
					err = q.Close(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// away is a node out of reach.
type away struct{ backend.Backend }

var errAway = errors.New("out of reach")

func (away) Acquire(context.Context, backend.Lease) (backend.Lease, error) {
	return backend.Lease{}, errAway
}
func (away) Release(context.Context, backend.Lease) error { return errAway }
