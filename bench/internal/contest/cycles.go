package contest

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// cycles locks and unlocks for as long as a round lasts.
type cycles struct {
	s       *spec
	clients []Client
	locks   []Lock
	checks  *checks
	pinger  *goredis.Client // for hand-overs: what a round trip takes; nil: the server has no PING
}

func newCycles(s *spec) (*cycles, error) {
	j := &cycles{s: s}
	for i := range s.Clients {
		c, err := open(s)
		if err != nil {
			return nil, err
		}
		j.clients = append(j.clients, c)
		for g := range s.Goroutines {
			key, _ := s.key(i*s.Goroutines + g)
			j.locks = append(j.locks, c.Mutex(key))
		}
	}
	if s.handsOver() && guest(s.Peer) == nil {
		j.pinger = dial(s.Addrs[0])
	}
	var err error
	j.checks, err = openChecks(s.Shared)
	return j, err
}

func (j *cycles) close() {
	for _, c := range j.clients {
		c.Close()
	}
}

func (j *cycles) round(o order, r *report) error {
	if j.pinger != nil {
		if err := j.ping(r); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer time.AfterFunc(o.For, cancel).Stop()
	var wg sync.WaitGroup
	all := make([]runner, len(j.locks))
	for i, l := range j.locks {
		_, number := j.s.key(i)
		all[i] = runner{j: j, l: l, me: int64(j.s.First + i + 1), check: j.checks.of(number)}
		if j.s.Samples || j.s.handsOver() {
			all[i].samples = make([]float64, 0, 1<<16)
		}
		wg.Go(func() {
			if j.s.handsOver() {
				all[i].handOver(ctx)
			} else {
				all[i].run(ctx)
			}
		})
	}
	wg.Wait()
	var err error
	for i := range all {
		w := &all[i]
		r.Workers = append(r.Workers, worker{w.cycles, micros(w.longest)})
		r.Sums["failures"] += float64(w.failures)
		r.Sums["violations"] += float64(w.violations)
		r.Sums["stale"] += float64(w.stale)
		name := "cycle"
		if j.s.handsOver() {
			name = "handover"
		}
		r.Samples[name] = append(r.Samples[name], w.samples...)
		if err == nil && w.cycles == 0 {
			err = w.err // it never worked
		}
	}
	return err
}

// runner is one goroutine's part of a round.
type runner struct {
	j     *cycles
	l     Lock
	me    int64
	check *check

	cycles, failures  int
	violations, stale int
	longest           time.Duration
	samples           []float64
	err               error
}

func (w *runner) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		if !w.lock(ctx, began) {
			return
		}
		w.enter()
		if w.j.s.Hold > 0 {
			hold(w.j.s.Hold)
		}
		w.leave()
		if err := w.l.Unlock(); err != nil {
			w.failed(err)
		}
		w.count()
		if w.samples != nil {
			w.samples = append(w.samples, micros(time.Since(began)))
		}
	}
}

// lock tries until it has the lock or the round is over: some peers give up by
// themselves. A wait that the end of the round cuts off counts as far as it got.
func (w *runner) lock(ctx context.Context, began time.Time) bool {
	for {
		err := w.l.Lock(ctx)
		w.longest = max(w.longest, time.Since(began))
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		w.failed(err)
	}
}

func (w *runner) failed(err error) {
	w.failures++
	w.err = err
}

// enter and leave watch over exclusion and, if the peer has tokens, over their order.
func (w *runner) enter() {
	if atomic.AddInt64(&w.check.inside, 1) != 1 {
		w.violations++
	}
	if t := w.l.Token(); t > 0 && t <= atomic.SwapInt64(&w.check.token, t) {
		w.stale++
	}
}

// count counts a cycle, for this goroutine and for all of the key.
func (w *runner) count() {
	w.cycles++
	atomic.AddInt64(&w.check.cycles, 1)
}

func (w *runner) leave() { atomic.AddInt64(&w.check.inside, -1) }

// handOver has the other process wait for each release of this one.
func (w *runner) handOver(ctx context.Context) {
	defer atomic.StoreInt64(&w.check.holder, 0) // the next round knows nothing of this one
	for ctx.Err() == nil {
		if !w.lock(ctx, time.Now()) {
			return
		}
		now := time.Now().UnixNano()
		w.enter()
		if before := atomic.SwapInt64(&w.check.holder, w.me); before != 0 && before != w.me {
			w.samples = append(w.samples, float64(now-atomic.LoadInt64(&w.check.released))/1000)
		}
		rest()
		w.leave()
		atomic.StoreInt64(&w.check.released, time.Now().UnixNano())
		if err := w.l.Unlock(); err != nil {
			w.failed(err)
		}
		w.count()
		for until := time.Now().Add(time.Second); atomic.LoadInt64(&w.check.holder) == w.me && time.Now().Before(until) && ctx.Err() == nil; {
			time.Sleep(200 * time.Microsecond)
		}
	}
}

// ping samples what one round trip takes, with the client that most peers use:
// one behind the other, and at the rhythm of the hand-overs. What slept so long
// takes longer to wake.
func (j *cycles) ping(r *report) error {
	for i := range 250 {
		name := "ping"
		if i >= 200 {
			name = "rested ping"
			rest()
		}
		began := time.Now()
		if err := j.pinger.Ping(context.Background()).Err(); err != nil {
			return err
		}
		r.Samples[name] = append(r.Samples[name], micros(time.Since(began)))
	}
	return nil
}

// rest is how long a lock is held before it is handed over.
func rest() { time.Sleep(10*time.Millisecond + rand.N(10*time.Millisecond)) }
