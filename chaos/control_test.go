package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/distmutex/distmutex/chaos/internal/history"
	"github.com/distmutex/distmutex/chaos/internal/network"
	"github.com/distmutex/distmutex/internal/redistest"
)

// Controls. Two sides of a partition share one node, which forgets a lock of the
// one side: where it counts at once, the other side gets the lock, and the
// harness sees it. Of ours it sees that it does not happen. F6, F20.
func TestTwoHoldersAreFound(t *testing.T) {
	f := redistest.Flavours()[0]
	redistest.NeedsControl(t, f)
	for make, want := range map[string]bool{redlock: true, unguarded: true, ours: false} {
		t.Run(make, func(t *testing.T) {
			t.Parallel()
			found := false
			for ttl := 2 * time.Second; ttl <= 16*time.Second && !found; ttl *= 2 { // a slow machine needs longer
				c := small(t, f)
				c.Make, c.Clients, c.TTL = make, 2, ttl
				var lost int
				found, lost = forgetBetween(t, newWorld(t, c))
				t.Logf("TTL %v: two in %v, updates lost %d", ttl, found, lost)
				if found && make == redlock && lost == 0 {
					t.Error("the resource saw no lost update")
				}
				if found && make != redlock && lost > 0 {
					t.Errorf("%d updates were lost in spite of tokens", lost)
				}
				if !want {
					break
				}
			}
			if found != want {
				t.Errorf("two holders found: %v, want %v", found, want)
			}
		})
	}
}

// side is one client of a control.
type side struct {
	l     locker
	r     *access
	log   *history.Log
	where *slot
}

func newSide(t *testing.T, w *world, s *slot, log *history.Log) side {
	s.config.Make = w.Make
	l, err1 := newLocker(s.config)
	r, err2 := dialResource(s.config.Resource)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	t.Cleanup(func() {
		r.c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		l.close(ctx) // half of its nodes do not answer
	})
	return side{l, r, log, s}
}

// cut keeps a side from two nodes.
func (s side) cut(nodes ...int) {
	for _, n := range nodes {
		s.where.proxies[n].Set(func(c *network.Conditions) { c.Hold = bothWays })
	}
}

// lock gets the lock until an instant, or not.
func (s side) lock(id, key string, until time.Time) hold {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	s.log.Add(history.Invoke, id, key)
	for ctx.Err() == nil {
		if h, err := s.l.lock(ctx, key); err == nil {
			s.log.Add(history.Grant, id, h.token(), s.log.Of(h.end))
			return h
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// forgetBetween lets one side hold a lock, makes the shared node forget it, and
// lets the other side try. It says whether the history has two holders, and how
// many updates the resource lost.
func forgetBetween(t *testing.T, w *world) (found bool, lost int) {
	var text bytes.Buffer
	log := history.NewLog(&text, w.clock)
	a, b := newSide(t, w, w.clients[0], log), newSide(t, w, w.clients[1], log)
	for _, s := range []side{a, b} { // each has seen all nodes
		if h := s.lock("c9.1/0.0", "warm", time.Now().Add(w.TTL)); h != nil {
			h.unlock(context.Background())
		}
	}
	a.cut(3, 4)
	b.cut(0, 1)
	h := a.lock("c0.1/0.1", "k", time.Now().Add(w.TTL))
	if h == nil {
		return false, 0
	}
	old, _, err := a.r.do("read", "k", "c0.1/0.1", h.token(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.host(2).do("flushall"); err != nil {
		t.Fatal(err)
	}
	if other := b.lock("c1.1/0.1", "k", h.end()); other != nil {
		now, _, _ := b.r.do("read", "k", "c1.1/0.1", other.token(), 0)
		b.r.do("write", "k", "c1.1/0.1", other.token(), now)
	}
	a.r.do("write", "k", "c0.1/0.1", h.token(), old) // it looked before, and was slow
	holds, err := history.Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	return len(history.TwoHolders(holds)) > 0, w.resource.count().Lost
}
