package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/chaos/internal/history"
)

// run lets clients work under faults, then judges what they saw. What hinders a
// run is an error of tb; what it finds is in the result.
func run(tb testing.TB, c config) result {
	tb.Helper()
	w := newWorld(tb, c)
	for _, s := range w.clients {
		if err := s.start(c.Dir); err != nil {
			tb.Fatal(err)
		}
	}
	begun := time.Now()
	n := newNemesis(w)
	w.unleash(n)
	r := result{config: c, took: time.Since(begun)}
	calm := w.clock.Now()
	r.problems = append(r.problems, w.waitForAll(calm)...)
	r.problems = append(r.problems, w.stop()...)
	r.problems = append(r.problems, w.residue()...)
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

// waitForAll checks that with the faults over every key is got again, soon after
// the nodes count again.
func (w *world) waitForAll(since int64) (problems []string) {
	limit := w.delay() + 2*w.TTL + 2*time.Minute // the machine may be busy
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		var waiting []string
		entered := w.resource.entered()
		for i := range w.Keys {
			if key := fmt.Sprint("k", i); entered[key] < since {
				waiting = append(waiting, key)
			}
		}
		if len(waiting) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return []string{fmt.Sprintf("I5 nobody got %v within %v after the faults were over", waiting, limit)}
		}
	}
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

func (c config) own() bool { return c.Make == ours || c.Make == unguarded }

// residue looks for locks after everybody has gone, before the last of them
// would have ended by themselves.
func (w *world) residue() (problems []string) {
	if !w.own() {
		return nil
	}
	time.Sleep(w.TTL / 4)
	for i := range nodes {
		keys, err := ask(w.host(i), func(ctx context.Context, c *goredis.Client) (keys []string, err error) {
			scan := c.Scan(ctx, 0, "*", 1000).Iterator()
			for scan.Next(ctx) {
				if !strings.Contains(scan.Val(), "\x00") {
					keys = append(keys, scan.Val())
				}
			}
			return keys, scan.Err()
		})
		if err != nil && !errors.Is(err, goredis.Nil) {
			problems = append(problems, fmt.Sprintf("node %d at the end: %v", i, err))
		}
		if len(keys) > 0 {
			problems = append(problems, fmt.Sprintf("I6 node %d still has the locks %q", i, keys))
		}
	}
	return problems
}

func (c config) name() string {
	return strings.Join([]string{string(c.Flavour), c.Make, c.Mode, fmt.Sprint(c.Seed)}, "-")
}

func (c config) file(ext string) string { return filepath.Join(c.Dir, c.name()+ext) }
