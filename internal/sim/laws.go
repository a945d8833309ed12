package sim

import (
	"fmt"
	"time"
)

// Law is what must hold.
type Law string

const (
	Exclusion Law = "exclusion" // no two holds of a lock overlap, as far as their validity goes
	Tokens    Law = "tokens"    // a later hold has the larger token, and no two share one
	Fence     Law = "fence"     // the resource never takes a write of a hold that a later one has overtaken
	Validity  Law = "validity"  // what a holder was told is so on a majority of the nodes
	Told      Law = "told"      // a holder is told by the end of validity that it lost the lock
	Truth     Law = "truth"     // an error, or its absence, says what is so
	Protocol  Law = "protocol"  // nothing of an owner is sent after its release
	Progress  Law = "progress"  // with the faults over, everybody gets the lock
	Quiet     Law = "quiet"     // when all is done, no key, no waiter and no goroutine is left
)

// Breach is a law that did not hold.
type Breach struct {
	Law  Law
	Text string
}

func (b Breach) String() string { return string(b.Law) + ": " + b.Text }

// judge looks at all holds together.
func (l *ledger) judge() {
	for i, b := range l.holds {
		for _, a := range l.holds[:i] {
			if a.key == b.key {
				l.pair(a, b)
				l.pair(b, a)
			}
		}
	}
}

// pair judges a before b.
func (l *ledger) pair(a, b *hold) {
	p := l.w.plan
	switch {
	case p.Excludes() && a.told <= b.told && b.told < a.ended && b.told < b.ended:
		l.breach(Exclusion, "%v and %v", a, b)
	case a.token == b.token && a.told <= b.told:
		l.breach(Tokens, "%v and %v share a token", a, b)
	case a.told < b.asked && a.token > b.token:
		l.breach(Tokens, "%v, then %v", a, b)
	case p.Excludes() && a.kept > 0 && a.client != b.client && a.told <= b.told && b.told < a.told+a.kept*99/100 && b.told < b.ended:
		l.breach(Exclusion, "%v, which was to be kept for %v, and %v", a, a.kept, b)
	}
}

// quiet looks for what is left.
func (w *world) quiet() {
	for _, n := range w.nodes {
		n.mu.Lock()
		for key := range n.data.locks {
			if o := n.lock(key).owner; o != none {
				w.log.breach(Quiet, "node %d still has lock %d for %v", n.id, key, o)
			}
		}
		if len(n.waiting) > 0 {
			w.log.breach(Quiet, "node %d still has %d waiters", n.id, len(n.waiting))
		}
		n.mu.Unlock()
	}
}

func (h *hold) String() string {
	return fmt.Sprintf("%v [token %d, asked %v, held %v to %v]", h.owner, h.token, short(h.asked), short(h.told), short(h.ended))
}

func short(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
