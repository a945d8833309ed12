package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
)

// named is a node that says which server it reaches.
type named struct {
	backend.Backend
	mu   sync.Mutex
	name string
	err  error
	sent int
}

func (n *named) Identity(context.Context) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name, n.err
}

func (n *named) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	n.mu.Lock()
	n.sent++
	n.mu.Unlock()
	return n.Backend.Acquire(ctx, want)
}

func TestTwoAddressesOfOneServerAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := memory.New(nil)
		a, b, c := &named{Backend: one, name: "x"}, &named{Backend: memory.New(nil), name: "y"}, &named{Backend: one, name: "x"}
		q, err := quorum.New([]backend.Backend{a, b, c}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.Acquire(t.Context(), lease("a"))
		var invalid *backend.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "node 0 and node 2") {
			t.Errorf("got %v, want an *InvalidError that names both", err)
		}
		if a.sent+b.sent+c.sent != 0 {
			t.Error("an acquire was sent to a quorum that is none")
		}
		c.mu.Lock()
		c.name, c.Backend = "z", memory.New(nil)
		c.mu.Unlock()
		mustAcquire(t, q, "b")
	})
}

// A node that was down at first and turns out to be another's server later does
// not count, and the others go on.
func TestTwinThatShowsLaterDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("connection refused")
		a, b, c := &named{Backend: memory.New(nil), name: "x"}, &named{Backend: memory.New(nil), name: "y"}, &named{name: "x", err: down}
		c.Backend = a.Backend
		q, err := quorum.New([]backend.Backend{a, b, c}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := mustAcquire(t, q, "a")
		if err := q.Release(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		c.err = nil
		c.mu.Unlock()
		time.Sleep(time.Second)
		for i := range 10 {
			got := mustAcquire(t, q, fmt.Sprint("b", i))
			if err := q.Release(t.Context(), got); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.sent != 0 {
			t.Errorf("the twin was asked %d times", c.sent)
		}
	})
}

// A node that does not say who it is, and answers releases all the same, as a
// replica does where there is nothing to be released, is told of, with the reason.
func TestNodeThatDoesNotSayWhoItIsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := &named{Backend: memory.New(nil), name: "x"}, &named{Backend: memory.New(nil), name: "y"}, &named{Backend: memory.New(nil), name: "z"}
		c.err = errors.New("it is a replica")
		var told []backend.NodeState
		q, err := quorum.New([]backend.Backend{a, b, c}, &quorum.Options{OnNode: func(s backend.NodeState) { told = append(told, s) }})
		if err != nil {
			t.Fatal(err)
		}
		cycles := func() {
			for i := range 10 {
				got := mustAcquire(t, q, fmt.Sprint(i))
				if err := q.Release(t.Context(), got); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			synctest.Wait() // for what the quorum did not wait for
		}
		cycles()
		if len(told) != 1 || !told[0].Aside || !errors.Is(told[0].Err, c.err) {
			t.Errorf("told %v, want once that it is set aside as it is a replica", told)
		}
		c.mu.Lock()
		c.err = nil
		c.mu.Unlock()
		cycles()
		if len(told) != 2 || told[1].Aside || c.sent == 0 {
			t.Errorf("told %v, and asked %d times, want that it is back", told, c.sent)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
