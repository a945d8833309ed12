package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/distmutex/distmutex/chaos/internal/history"
	"github.com/distmutex/distmutex/chaos/internal/network"
)

// run lets clients work under faults in a new world.
func run(tb testing.TB, c config) result {
	tb.Helper()
	w := newWorld(tb, c)
	w.start()
	return w.run()
}

// run lets clients that were started work under faults, then judges what they saw.
// What hinders it is an error of the test; what it finds is in the result.
func (w *world) run() result {
	tb, c := w.tb, w.config
	tb.Helper()
	begun := time.Now()
	n := newNemesis(w)
	w.unleash(n)
	r := result{config: c, took: time.Since(begun)}
	time.Sleep(network.Latest) // what was held back has arrived, or is lost
	r.calm = w.clock.Now()
	r.problems = append(r.problems, w.waitForAll(r.calm)...)
	r.problems = append(r.problems, w.stop()...)
	r.problems = append(r.problems, w.residue(r.calm)...)
	r.seen = w.resource.count()
	var all []history.Hold
	for _, s := range w.clients {
		holds, err := s.holds()
		if err != nil {
			tb.Errorf("the history can't be read: %v", err)
		}
		all = append(all, holds...)
	}
	r.judge(w, n.strikes(), all)
	if err := r.write(); err != nil {
		tb.Error(err)
	}
	return r
}

// unleash lets the nemesis work until there are enough acquisitions, or the time
// is up.
func (w *world) unleash(n *nemesis) {
	ctx, cancel := context.WithTimeout(context.Background(), w.Limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.run(ctx)
	}()
	begun := time.Now()
	for ctx.Err() == nil && (time.Since(begun) < w.Least || w.resource.count().Holds < w.Acquisitions) {
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	cancel()
	<-done
}

// stop ends all clients in peace.
func (w *world) stop() (problems []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, s := range w.clients {
		all.Go(func() {
			err := s.stop(2 * time.Minute)
			s.mu.Lock()
			defer s.mu.Unlock()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				problems = append(problems, err.Error())
			case s.last == nil:
				problems = append(problems, fmt.Sprintf("client %d said no farewell", s.number))
			case !w.own():
			case s.last.Leaked > 0:
				problems = append(problems, fmt.Sprintf("I6 client %d left %d goroutines", s.number, s.last.Leaked))
			case s.last.Error != "":
				problems = append(problems, fmt.Sprintf("I6 client %d could not close: %s", s.number, s.last.Error))
			}
		})
	}
	all.Wait()
	return problems
}

func (c config) own() bool { return isOurs(c.Make) }

func (c config) name() string {
	return strings.Join([]string{fmt.Sprintf("%sx%d", c.Flavour, c.Nodes), c.Make, c.Mode, fmt.Sprint(c.Seed)}, "-")
}

func (c config) file(ext string) string { return filepath.Join(c.Dir, c.name()+ext) }
