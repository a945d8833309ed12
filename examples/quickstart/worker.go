package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/mutex"
)

// counter is what the lock protects: a plain int behind a gate, which refuses
// whoever comes with a smaller token than the largest it has seen.
type counter struct {
	gate fencing.Gate
	n    int
}

func (c *counter) read(token fencing.Token) (n int, err error) {
	err = c.gate.Do(token, func() error { n = c.n; return nil })
	return n, err
}

func (c *counter) write(token fencing.Token, n int) error {
	return c.gate.Do(token, func() error { c.n = n; return nil })
}

// worker stands for a process: it shares with the others only the backend and
// the counter.
type worker struct {
	name    string
	lock    *mutex.Leased
	counter *counter
	log     *timeline
	err     error
}

func join(name string, renews bool, b backend.Backend, c *counter, log *timeline) (*worker, error) {
	o := mutex.Options{TTL: term}
	if !renews {
		o.RenewEvery = -1
	}
	lock, err := mutex.New(b, fmt.Sprintf("quickstart-%d", os.Getpid()), &o)
	return &worker{name: name, lock: lock, counter: c, log: log}, err
}

// work increments the counter once. Where the write is refused it starts anew,
// with another lease, another token and what the counter says by then.
func (w *worker) work(ctx context.Context, stalls func()) error {
	for {
		err := w.increment(ctx, stalls)
		if !errors.Is(err, fencing.ErrStale) {
			return err
		}
		stalls = nil // once is enough
	}
}

// increment reads the counter and writes it a little later, which is right only
// if nobody else writes in between.
func (w *worker) increment(ctx context.Context, stalls func()) error {
	done := false
	err := w.lock.Do(ctx, func(ctx context.Context) error {
		token, _ := fencing.FromContext(ctx)
		defer context.AfterFunc(ctx, func() { w.log.add(w, token, "has lost the lock") })()

		n, err := w.counter.read(token)
		if err != nil {
			return err
		}
		w.log.add(w, token, "has the lock, reads %d", n)
		time.Sleep(pause)
		if stalls != nil {
			w.log.add(w, token, "stalls, and does not see that its lease ends")
			stalls()
			w.log.add(w, token, "wakes up, and goes on as if nothing had happened")
		}
		if err := w.counter.write(token, n+1); err != nil {
			w.log.add(w, token, "writes %d: REFUSED, %v", n+1, err)
			w.log.refused.Add(1)
			return err
		}
		w.log.add(w, token, "writes %d", n+1)
		done = true
		return nil
	})
	if done {
		return nil // the counter took it: that the lease ended since then is no matter
	}
	return err
}

// timeline prints what happens when, and with which token.
type timeline struct {
	mu      sync.Mutex
	out     io.Writer
	begin   time.Time
	refused atomic.Int64
}

func (t *timeline) add(w *worker, token fencing.Token, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Since(t.begin).Milliseconds()
	fmt.Fprintf(t.out, "%5d ms  token %d  %s %s\n", at, token, w.name, fmt.Sprintf(format, args...))
}

// verdict is one line: whether every increment counts once, and why.
func (t *timeline) verdict(want, got int) error {
	switch {
	case got != want:
		return fmt.Errorf("verdict: %d increments, but the counter says %d", want, got)
	case t.refused.Load() == 0:
		return errors.New("verdict: no write came too late, so there was nothing to be seen")
	}
	_, err := fmt.Fprintf(t.out, "verdict: %d increments, the counter says %d, late writes refused: %d\n", want, got, t.refused.Load())
	return err
}
