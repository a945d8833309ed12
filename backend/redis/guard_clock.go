package redis

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// watch follows a server's clock by ours, which is monotonic. Each answer bounds
// by how much the server is ahead: it read its clock between our sending and our
// receiving.
type watch struct {
	low, high time.Duration // the last answer's bounds
	known     bool
	recent    window
	before    window
}

// window keeps the least upper bound of what was seen from begin on.
type window struct {
	begin time.Time
	high  time.Duration
}

// longRun is the part of the time by which a clock that nobody sets may be off
// after long; in the short run backend.Drift is allowed.
const longRun = 2000

// observe notes one answer and says by how much the clock ran ahead of ours since
// the last ones, beyond what is allowed over a term of length.
func (w *watch) observe(low, high time.Duration, now time.Time, length time.Duration) (by time.Duration) {
	for _, past := range []window{w.before, w.recent} {
		if !past.begin.IsZero() {
			allowed := backend.Drift(length) + max(0, now.Sub(past.begin))/longRun
			by = max(by, low-past.high-allowed)
		}
	}
	w.low, w.high, w.known = low, high, true
	switch {
	case by > 0:
		w.before, w.recent = window{}, window{now, high}
	case w.recent.begin.IsZero() || now.Sub(w.recent.begin) > length/2:
		w.before, w.recent = w.recent, window{now, high}
	default:
		w.recent.high = min(w.recent.high, high)
	}
	return by
}

// fleet is what the guards of one quorum share.
type fleet struct {
	epoch  time.Time    // from which clocks are counted
	need   int          // a majority
	maxTTL atomic.Int64 // the largest seen anywhere

	mu   sync.Mutex
	runs map[*guard]run // clocks that ran ahead lately
}

type run struct {
	by time.Duration
	at time.Time
}

func newFleet(nodes int, maxTTL time.Duration) *fleet {
	f := &fleet{epoch: time.Now(), need: nodes/2 + 1, runs: make(map[*guard]run)}
	f.maxTTL.Store(int64(maxTTL))
	return f
}

func (f *fleet) longest() time.Duration { return time.Duration(f.maxTTL.Load()) }

// raise learns of a MaxTTL.
func (f *fleet) raise(maxTTL time.Duration) {
	for {
		old := f.maxTTL.Load()
		if int64(maxTTL) <= old || f.maxTTL.CompareAndSwap(old, int64(maxTTL)) {
			return
		}
	}
}

// bounds says by how much a server is ahead, counted from the epoch.
func (f *fleet) bounds(server, sent, got time.Time) (low, high time.Duration) {
	at := server.Sub(f.epoch.Round(0)) // by the wall clock
	return at - got.Sub(f.epoch), at - sent.Sub(f.epoch)
}

// ranAhead notes that a node's clock ran ahead. If those of a majority did, all
// by the same, then it was ours that stood still, as in a machine that was
// suspended: it returns the nodes, which are well.
func (f *fleet) ranAhead(g *guard, by time.Duration, now time.Time) (well []*guard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[g] = run{by, now}
	length := f.longest()
	for other, r := range f.runs {
		switch {
		case now.Sub(r.at) > delay(length):
			delete(f.runs, other)
		case (r.by - by).Abs() <= 2*backend.Drift(length):
			well = append(well, other)
		}
	}
	if len(well) < f.need {
		return nil
	}
	return well
}
