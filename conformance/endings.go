package conformance

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var endingChecks = []check{
	{"endings/nothing-stays", 14, "What a client has started ends with it, whatever came of its calls.", 0, nothingStays},
	{"endings/cut-off", 14, "A client that ends with requests on their way has ended when they have arrived, and nothing of it stays.", holding, endCutOff},
}

// lives is how many clients have to leave the same behind before it counts: what
// is started once for all, or kept in a pool that they share, is nobody's.
const lives = 4

func nothingStays(t *trial) {
	var all []*mortal
	for range lives {
		m := t.mortal()
		all = append(all, m)
		m.lives(func() { t.variously(m.b) })
		m.end()
	}
	t.haveEnded(all)
}

// variously uses a client until each kind of call has ended in each way that can
// be had from outside, and leaves it with a lease.
func (t *trial) variously(b backend.Backend) {
	t.Helper()
	t.release(b, t.acquire(b, t.lease(long)))
	held := t.acquire(b, t.lease(long))
	t.refused(b)
	t.renew(b, held)
	if t.waiter(b) != nil {
		t.cancelled(b)
		w := t.queue(b, long, 0)
		t.release(b, held)
		held = t.served(w, patience)
	}
	t.release(b, held)
	for _, d := range []time.Duration{0, rand.N(2 * time.Millisecond)} {
		for verb, call := range t.verbs(b) {
			other := t.lease(long)
			ctx, cancel := context.WithTimeout(t.ctx, d)
			_ = call(ctx, other)
			cancel()
			if verb != "Release" {
				t.undo(b, other)
			}
		}
	}
	t.key += "+"
	t.acquire(b, t.lease(long))
}

// endCutOff ends clients some of whose requests are still on their way. It does
// not insist that they end before those arrive: for how long an answer is waited
// for is theirs to say.
func endCutOff(t *trial) {
	var all []*mortal
	var deliver []func()
	for range lives {
		m := t.mortal()
		all = append(all, m)
		m.lives(func() {
			t.release(m.b, t.acquire(m.b, t.lease(long)))
			d := t.holdBack(m.b)
			deliver = append(deliver, d)
			t.unanswered(m.b, d)
		})
	}
	for _, m := range all {
		m.ending()
	}
	inNaps(soon, func() bool { return !slices.ContainsFunc(all, (*mortal).lingers) })
	for _, d := range deliver {
		d()
	}
	for _, m := range all {
		m.end()
	}
	t.haveEnded(all)
}
