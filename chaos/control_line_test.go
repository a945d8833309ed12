package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/chaos/internal/history"
	"github.com/distmutex/distmutex/chaos/internal/network"
	"github.com/distmutex/distmutex/internal/redistest"
)

// A control for one node. A waiter hears late that it was passed the lock, and
// can't ask anybody: where the term counts from the news, the next in line has the
// lock beside it, and the harness sees it. Of ours it sees that it does not happen.
func TestStaleNewsIsFound(t *testing.T) {
	f := redistest.Flavours()[0]
	redistest.NeedsControl(t, f)
	for make, want := range map[string]bool{eager: true, ours: false} {
		t.Run(make, func(t *testing.T) {
			t.Parallel()
			heard, found := false, false
			for range 8 { // a slow machine may miss the moment
				c := small(t, f)
				c.Nodes, c.Make, c.Clients = 1, make, 3
				var lost int
				heard, found, lost = hearLate(t, newWorld(t, c))
				t.Logf("had the lock by stale news %v, two in %v, updates lost %d", heard, found, lost)
				if lost > 0 {
					t.Errorf("%d updates were lost in spite of tokens", lost)
				}
				if heard && found == want {
					break
				}
			}
			if !heard || found != want {
				t.Errorf("two holders found: %v, want %v", found, want)
			}
		})
	}
}

// hearLate has the news of a grant arrive when a good part of its term is over,
// and nothing else. It says whether that made a holder, whether the history has
// two at once, and how many updates the resource lost. A waiter whose own question
// is under way just then does not hear.
func hearLate(t *testing.T, w *world) (heard, found bool, lost int) {
	name := filepath.Join(w.Dir, "control.log")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log := history.NewLog(file, w.clock)
	a, b, c := newSide(t, w, w.clients[0], log), newSide(t, w, w.clients[1], log), newSide(t, w, w.clients[2], log)
	limit := time.Now().Add(6 * w.TTL)
	first := a.lock("c0.1/0.1", "k", limit)
	if first == nil {
		t.Fatal("the first did not get the lock")
	}
	second, third := make(chan hold, 1), make(chan hold, 1)
	go func() { second <- b.lock("c1.1/0.1", "k", limit) }()
	w.inLine(t, 1)
	go func() { third <- c.lock("c2.1/0.1", "k", limit) }()
	w.inLine(t, 2)
	b.cut(0)
	passed := time.Now()
	log.Add(history.Release, "c0.1/0.1", log.Of(first.end))
	if err := first.unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(w.TTL * 4 / 10) // not as long as until the waiter asks by itself
	b.where.proxies[0].Set(func(c *network.Conditions) { c.Hold[network.ToClient] = false })
	time.AfterFunc(2*w.TTL, func() { b.where.proxies[0].Set(func(c *network.Conditions) { c.Hold = [2]bool{} }) })
	if h := <-second; h != nil {
		heard = time.Since(passed) < w.TTL
		old, _, _ := b.r.do("read", "k", "c1.1/0.1", h.token(), 0)
		if next := <-third; next != nil {
			now, _, _ := c.r.do("read", "k", "c2.1/0.1", next.token(), 0)
			c.r.do("write", "k", "c2.1/0.1", next.token(), now)
		}
		b.r.do("write", "k", "c1.1/0.1", h.token(), old) // it looked before, and was slow
	}
	return heard, two(t, name), w.resource.count().Lost
}

// inLine waits until so many stand in line.
func (w *world) inLine(t *testing.T, want int64) {
	t.Helper()
	for range 500 {
		n, err := ask(w.host(0), func(ctx context.Context, c *goredis.Client) (int64, error) {
			return c.ZCard(ctx, "distmutex:1:line\x00{k}\x00").Result()
		})
		if err != nil {
			t.Fatal(err)
		}
		if n == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d do not stand in line", want)
}

func two(t *testing.T, log string) bool {
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	holds, err := history.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return len(history.TwoHolders(holds)) > 0
}
