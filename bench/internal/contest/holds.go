package contest

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
)

// holds keeps many locks for as long as the process lives.
type holds struct {
	c     Client
	locks []Lock
	cost  footprint // of all
}

func newHolds(s *spec) (*holds, error) {
	c, err := open(s)
	if err != nil {
		return nil, err
	}
	j := &holds{c: c}
	warm := c.Mutex("bench:warm") // so that the client's own share is not counted
	if err := warm.Lock(context.Background()); err != nil {
		return nil, err
	}
	if err := warm.Unlock(); err != nil {
		return nil, err
	}
	before := foot()
	j.locks = make([]Lock, s.Goroutines)
	var g errgroup.Group
	g.SetLimit(64)
	for i := range j.locks {
		key, _ := s.key(i)
		j.locks[i] = c.Mutex(key)
		g.Go(func() error { return insist(j.locks[i]) })
	}
	err = g.Wait()
	time.Sleep(s.Settle)
	j.cost = foot().less(before)
	return j, err
}

// insist locks what is free. A peer that waits all the same is asked again.
func insist(l Lock) (err error) {
	for range 10 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err = l.Lock(ctx)
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

func (j *holds) close() { j.c.Close() }

func (j *holds) round(o order, r *report) error {
	time.Sleep(o.For)
	for _, l := range j.locks {
		if l.(interface{ Lost() bool }).Lost() {
			r.Sums["lost"]++
		}
	}
	j.cost.report(r, len(j.locks))
	return nil
}

// footprint is what a process has in memory.
type footprint struct{ goroutines, heap, stack float64 }

func foot() footprint {
	var m runtime.MemStats
	for range 3 { // what is freed late, too
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return footprint{float64(runtime.NumGoroutine()), float64(m.HeapAlloc), float64(m.StackInuse)}
}

func (f footprint) less(g footprint) footprint {
	return footprint{f.goroutines - g.goroutines, f.heap - g.heap, f.stack - g.stack}
}

// report says how many goroutines there are for all n, and the bytes of each.
func (f footprint) report(r *report, n int) {
	r.Sums["goroutines"] = f.goroutines
	r.Sums["heap each"] = f.heap / float64(n)
	r.Sums["stack each"] = f.stack / float64(n)
}
