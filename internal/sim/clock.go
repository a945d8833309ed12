package sim

import (
	"time"

	"github.com/distmutex/distmutex/backend"
)

// watch is what a driver knows of its node's clock: by how much it is ahead of the
// client's, between two bounds.
type watch struct {
	low, high time.Duration
	at        time.Duration // when that was seen
	known     bool
	aheadTo   time.Duration // it ran ahead: the node does not count until then
}

// look notes the clock that came with an answer, and says whether the node ran
// ahead of what it was before by more than the drift allowance, over a term and
// over the time since.
func (d *driver) look(r reply, sent time.Duration) bool {
	got := d.w.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	own := func(at time.Duration) time.Duration { return at + d.c.plan.Offset }
	low, high := r.clock-own(got), r.clock-own(sent)
	allowed := 2*backend.Drift(maxTTL) + (got-d.watch.at)/100
	if d.watch.known && low-d.watch.high > allowed {
		d.watch.aheadTo = got + delay
	}
	d.watch.low, d.watch.high, d.watch.at, d.watch.known = low, high, got, true
	return d.w.plan.Mode == Jump && got < d.watch.aheadTo
}

// Clock is for the quorum, which compares the nodes' clocks.
func (d *driver) Clock() (ahead, within time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &d.watch
	return (w.low + w.high) / 2, (w.high-w.low)/2 + backend.Drift(maxTTL)/2 + 2*sway, w.known && d.w.plan.Clocks
}
