package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/chaos/internal/history"
	"github.com/distmutex/distmutex/chaos/internal/machine"
	"github.com/distmutex/distmutex/mutex"
)

// clientEnv has a client process's configuration, in JSON.
const clientEnv = "DISTMUTEX_CHAOS_CLIENT"

// clientConfig is what a client process is told.
type clientConfig struct {
	ID       string // unique to the process
	Make     string
	Nodes    []string // its proxies
	Resource string
	Log      string // the file it appends to
	Keys     int
	Workers  int
	Long     int  // how many of a hundred holds are long
	Sleeps   bool // it is on a machine of its own, which can be suspended
	TTL      time.Duration
	Seed     uint64
}

// farewell is what a client process says on its standard output at its end.
type farewell struct {
	Leaked int // goroutines that outlived the locks
	Error  string
}

// clientMain is the whole of a client process. It works until its standard input
// is closed, and from a byte there on with patience.
func clientMain(text string) error {
	var c clientConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if c.Sleeps {
		if err := machine.Enter(); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(c.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	calm := make(chan struct{})
	go func() {
		io.ReadFull(os.Stdin, make([]byte, 1))
		close(calm)
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	before := runtime.NumGoroutine()
	l, err := newLocker(c)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i := range c.Workers {
		w := &worker{c: c, name: fmt.Sprint(i), calm: calm, l: l, log: history.NewLog(file, history.NewClock()), dice: rand.New(rand.NewPCG(c.Seed, uint64(i)))}
		if w.resource, err = dialResource(c.Resource); err != nil {
			return err
		}
		all.Go(func() { w.work(ctx) })
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(leave(l, c, before))
}

// leave closes everything, and looks at what is left after a while.
func leave(l locker, c clientConfig, before int) farewell {
	var f farewell
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the machine may be busy
	defer cancel()
	if err := l.close(ctx); err != nil {
		f.Error = err.Error()
	}
	for range 100 {
		if f.Leaked = max(0, runtime.NumGoroutine()-before); f.Leaked == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return f
}

// ownKey begins the names of locks that one worker alone takes.
const ownKey = "own:"

// worker takes locks, one after the other, and uses the resource under them.
type worker struct {
	c        clientConfig
	name     string
	calm     <-chan struct{}
	l        locker
	resource *access
	log      *history.Log
	dice     *rand.Rand
}

func (w *worker) work(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprint("k", w.dice.IntN(w.c.Keys))
		if w.dice.IntN(10) == 0 {
			key = fmt.Sprint(ownKey, w.c.ID, ".", w.name)
		}
		id := fmt.Sprintf("%s/%s.%d", w.c.ID, w.name, n)
		w.log.Add(history.Invoke, id, key)
		limit, cancel := w.patience(ctx)
		h, err := w.l.lock(limit, key)
		cancel()
		if err != nil {
			w.log.Add(history.Refuse, id, word(err))
			time.Sleep(time.Duration(w.dice.Int64N(int64(30 * time.Millisecond))))
			continue
		}
		w.log.Add(history.Grant, id, h.token(), w.log.Of(h.end))
		w.hold(id, key, h)
	}
}

// patience is for how long a lock is waited for.
func (w *worker) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	select {
	case <-w.calm:
		return context.WithCancel(ctx)
	default:
		return context.WithTimeout(ctx, 4*w.c.TTL)
	}
}

// hold uses the resource until it has had enough, or has lost the lock.
func (w *worker) hold(id, key string, h hold) {
	over := make(chan struct{})
	var watch sync.WaitGroup
	if lost := h.lost(); lost != nil {
		watch.Go(func() {
			select {
			case <-lost:
				w.log.Add(history.Lose, id, w.log.Of(h.end))
			case <-over:
			}
		})
	}
	long := time.Now().Add(w.length())
	for w.use(id, key, h) && time.Now().Before(long) {
		time.Sleep(time.Duration(w.dice.Int64N(int64(w.c.TTL / 20))))
	}
	w.log.Add(history.Release, id, w.log.Of(h.end))
	close(over)
	watch.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), w.c.TTL)
	defer cancel()
	if err := h.unlock(ctx); err != nil {
		w.log.Add(history.Done, id, word(err))
	} else {
		w.log.Add(history.Done, id, "ok")
	}
}

// length is for how long a lock is held: mostly a moment, sometimes for most of
// a term, or for longer where it is renewed.
func (w *worker) length() time.Duration {
	longest := time.Millisecond
	switch at := w.dice.IntN(100); {
	case at < w.c.Long && isOurs(w.c.Make) && w.dice.IntN(20) == 0:
		longest = 15 * w.c.TTL // some dozens of renewals, while nodes forget it
	case at < w.c.Long && isOurs(w.c.Make):
		longest = 2 * w.c.TTL
	case at < w.c.Long:
		longest = w.c.TTL * 9 / 10
	case at < 4*w.c.Long:
		longest = w.c.TTL / 4
	}
	return time.Duration(w.dice.Int64N(int64(longest)))
}

// use looks whether the lock is held, reads, thinks, and writes: what happens in
// between goes unnoticed, as in most programs. It says no if there was no point
// in going on.
func (w *worker) use(id, key string, h hold) bool {
	now := w.log.Now()
	if !h.stands() {
		return false
	}
	w.log.AddAt(now, history.Believe, id, w.log.Of(h.end))
	version, ok, err := w.resource.do("read", key, id, h.token(), 0)
	if err != nil || !ok {
		return false
	}
	longest := 3 * time.Millisecond
	if w.dice.IntN(10) == 0 {
		longest = w.c.TTL / 10
	}
	time.Sleep(time.Duration(w.dice.Int64N(int64(longest))))
	_, ok, err = w.resource.do("write", key, id, h.token(), version)
	return err == nil && ok
}

// word says in one word what went wrong.
func word(err error) string {
	var uncounted *quorum.UncountedError
	switch {
	case errors.As(err, &uncounted):
		return uncounted.Reason
	case errors.Is(err, mutex.ErrHeld):
		return "held"
	case errors.Is(err, mutex.ErrLost):
		return "lost"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "timeout"
	}
	return "unknown"
}
