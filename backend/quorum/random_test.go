package quorum_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

var (
	firstSeed = flag.Int64("seed", 1, "first seed of TestRandomSchedules")
	schedules = flag.Int64("schedules", 400, "how many seeds TestRandomSchedules runs")
)

// TestRandomSchedules runs clients against nodes whose messages are late, lost,
// or applied without an answer, and whose clocks are off by less than the drift
// allowance. One minority of the nodes is silent or forgets its counters, never
// a lock.
func TestRandomSchedules(t *testing.T) {
	holds := 0
	for seed := *firstSeed; seed < *firstSeed+*schedules && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { holds += schedule(t, seed) })
	}
	t.Logf("%d holds in %d schedules from seed %d", holds, *schedules, *firstSeed)
	if holds == 0 {
		t.Error("no lock was ever held: the schedules show nothing")
	}
}

// hold is one hold as its holder saw it.
type hold struct {
	asked, told, ended time.Time
	token              backend.Token
	owner              string
}

type run struct {
	t     *testing.T
	seed  int64
	nodes cluster
	mu    sync.Mutex
	rng   *rand.Rand
	holds []hold
}

func (r *run) n(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.IntN(n)
}

// within draws a time below d.
func (r *run) within(d time.Duration) time.Duration { return time.Duration(r.n(int(d))) }

const term = 200 * ms

func schedule(t *testing.T, seed int64) int {
	r := &run{t: t, seed: seed, rng: rand.New(rand.NewPCG(uint64(seed), 1))}
	size := []int{3, 5}[r.n(2)]
	r.nodes = newCluster(make([]backend.Token, size)...)
	for _, s := range r.nodes {
		s.clocked = r.n(4) > 0
		s.counter = backend.Token(r.n(3))
		s.ahead = r.within(2 * ms)
	}
	sick := r.n(size/2 + 1)
	var clients sync.WaitGroup
	for c := range 3 {
		loss := r.n(6)
		q := r.nodes.client(t, &quorum.Options{NodeTimeout: 60 * ms}, func(node int, op string, _ backend.Lease) fate {
			f := fate{there: r.within(8 * ms), back: r.within(8 * ms)}
			if r.n(20) == 0 {
				f.there += r.within(2 * term)
			}
			f.lost = node < sick && r.n(2) == 0 || r.n(100) < loss
			f.mute = r.n(100) < loss
			return f
		})
		clients.Go(func() { r.client(q, c) })
	}
	clients.Wait()
	time.Sleep(3 * term) // for what is still on its way
	r.check()
	return len(r.holds)
}

// client takes the lock some times, renews some holds, and lets some lapse.
func (r *run) client(q *quorum.Backend, id int) {
	for i := range 12 {
		want := backend.Lease{Key: "k", Owner: fmt.Sprint(id, "-", i), TTL: term, Start: time.Now()}
		ctx, cancel := context.WithTimeout(context.Background(), 40*ms+r.within(120*ms))
		got, err := q.Acquire(ctx, want)
		cancel()
		if err != nil {
			q.Release(ctx, want)
			time.Sleep(r.within(30 * ms))
			continue
		}
		h := hold{asked: want.Start, told: time.Now(), token: got.Token, owner: got.Owner}
		if h.told.Before(got.Until()) {
			got = r.use(q, got)
			h.ended = earlier(time.Now(), got.Until())
			r.mu.Lock()
			r.holds = append(r.holds, h)
			r.mu.Unlock()
		}
		ctx, cancel = context.WithTimeout(context.Background(), r.within(100*ms))
		q.Release(ctx, got)
		cancel()
		time.Sleep(r.within(30 * ms))
	}
}

// use holds the lease for a while, renewing it, and returns what it became.
func (r *run) use(q *quorum.Backend, got backend.Lease) backend.Lease {
	for range r.n(4) {
		time.Sleep(r.within(term / 2))
		next := got
		next.TTL, next.Start = term, time.Now()
		if !next.Start.Before(got.Until()) {
			return got
		}
		ctx, cancel := context.WithDeadline(context.Background(), got.Until())
		err := q.Renew(ctx, next)
		cancel()
		if err == nil && time.Now().Before(got.Until()) {
			got = next
		}
	}
	time.Sleep(r.within(term / 3))
	return got
}

// check is the law: holds do not overlap, and tokens follow real time.
func (r *run) check() {
	for i, a := range r.holds {
		for _, b := range r.holds[:i] {
			switch {
			case a.told.Before(b.ended) && b.told.Before(a.ended):
				r.t.Errorf("seed %d: two holds overlap: %v and %v", r.seed, a, b)
			case a.token == b.token:
				r.t.Errorf("seed %d: two holds share token %d: %v and %v", r.seed, a.token, a, b)
			case a.told.Before(b.asked) && a.token > b.token, b.told.Before(a.asked) && b.token > a.token:
				r.t.Errorf("seed %d: a token went back: %v and %v", r.seed, a, b)
			}
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (h hold) String() string {
	return fmt.Sprintf("[%s token %d asked %s told %s ended %s]", h.owner, h.token,
		h.asked.Format("05.000000"), h.told.Format("05.000000"), h.ended.Format("05.000000"))
}
