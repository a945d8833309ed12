package sim

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// ledger is the history of a run: attempts, holds, what broke a law, and a hash of
// all events with their instants.
type ledger struct {
	w *world

	mu       sync.Mutex
	attempts map[owner]*attempt
	holds    []*hold
	writes   int
	stale    int
	turns    int // holds of a lease that another had before
	net      Net
	breaches []Breach
	hash     uint64
	lines    []line // if they are wanted
}

// attempt is one owner, as the layer below package mutex saw it.
type attempt struct {
	owner
	calls    [opWake]int
	asked    time.Duration // when it was first acquired
	start    time.Duration // of its first term
	until    time.Duration // the end of its validity
	alarm    time.Duration // the same by a clock that stands still in a sleep, as timers go by
	first    backend.Token // of its first grant
	token    backend.Token // of the last; all between belong to it
	last     *hold         // the one of its holds that began last
	answered uint          // nodes that granted or refused, as a set
	refusals uint
	losses   uint // nodes that answered a renewal that it is lost
	closed   bool // its release was asked for
}

func newLedger(w *world) *ledger { return &ledger{w: w, attempts: make(map[owner]*attempt)} }

// at is the attempt of an owner; l.mu is held.
func (l *ledger) at(o owner) *attempt {
	a := l.attempts[o]
	if a == nil {
		a = &attempt{owner: o, asked: -1}
		l.attempts[o] = a
	}
	return a
}

func (l *ledger) breach(law Law, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := fmt.Sprintf("at %v: ", short(l.w.now())) + fmt.Sprintf(format, args...)
	l.breaches = append(l.breaches, Breach{law, text})
	l.record("breach", -1, -1, opApp, none, 0, text)
}

// called notes a call of the library to its backend, and how many there were.
func (l *ledger) called(op op, o owner) int {
	l.mu.Lock()
	a := l.at(o)
	closed := a.closed
	a.closed = closed || op == opRelease
	a.calls[op]++
	nth := a.calls[op]
	l.mu.Unlock()
	if closed && op != opRelease {
		l.breach(Protocol, "%v of %v after its release was asked for", op, o)
	}
	return nth
}

func (l *ledger) asked(o owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.at(o); a.asked < 0 {
		a.asked = l.w.now()
	}
}

// granted notes what the quorum says it granted, and looks whether that is so.
func (l *ledger) granted(o owner, want, got backend.Lease) {
	if got.Start.IsZero() || got.Start.After(want.Start) {
		got.Start = want.Start
	}
	l.mu.Lock()
	a := l.at(o)
	if a.first == 0 {
		a.start, a.first = got.Start.Sub(l.w.begun), got.Token
	}
	a.token = max(a.token, got.Token)
	until := a.extend(l.w, got.Start.Sub(l.w.begun), min(got.TTL, want.TTL))
	l.mu.Unlock()
	l.standing(o, until)
}

func (l *ledger) renewed(o owner, held backend.Lease) {
	l.mu.Lock()
	until := l.at(o).extend(l.w, held.Start.Sub(l.w.begun), held.TTL)
	l.mu.Unlock()
	l.standing(o, until)
}

// extend takes a term that began then, and says when its validity ends.
func (a *attempt) extend(w *world, start, ttl time.Duration) time.Duration {
	end := start + validity(ttl)
	until := end - w.clients[a.client].slept(start)
	a.alarm, a.until = max(a.alarm, end), max(a.until, until)
	return until
}

// validity is how much of a term may be relied on in numbers of its own: what
// the library makes of it is judged by this.
func validity(ttl time.Duration) time.Duration { return ttl - ttl/100 - 2*ms }

// standing checks that a majority keeps the owner's lock until then. A node that
// lost it by a fault is none of the library's.
func (l *ledger) standing(o owner, until time.Duration) {
	if !l.w.plan.validity() || l.w.now() >= until {
		return
	}
	good := 0
	for _, n := range l.w.nodes {
		if kept, forgot := n.holds(o); forgot || kept >= until-2*time.Microsecond {
			good++
		}
	}
	if good < l.w.plan.need() {
		l.breach(Validity, "%v is said to hold until %v, and %d of %d nodes keep it so long", o, short(until), good, len(l.w.nodes))
	}
}

// acquired and lostOn note what a node answered.
func (l *ledger) acquired(node int, o owner, r reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.at(o)
	if r.status != uncounted {
		a.answered |= 1 << node
	}
	if r.status == no {
		a.refusals |= 1 << node
	}
}

func (l *ledger) renewedOn(node int, o owner, r reply) {
	if r.status != yes {
		l.gaveUp(node, o)
	}
}

// gaveUp notes that the owner is not to be renewed on the node any more.
func (l *ledger) gaveUp(node int, o owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(o).losses |= 1 << node
}

// refused checks that an ErrHeld is definite.
func (l *ledger) refused(o owner) {
	l.mu.Lock()
	answered, refusals := l.at(o).answered, l.at(o).refusals
	l.mu.Unlock()
	if n := bits.OnesCount(answered); n < l.w.plan.need() || refusals == 0 {
		l.breach(Truth, "%v is said to be refused: %d of %d nodes answered", o, n, len(l.w.nodes))
	}
}

// lost checks that an ErrLost is definite.
func (l *ledger) lost(o owner) {
	l.mu.Lock()
	losses := l.at(o).losses
	l.mu.Unlock()
	if n := bits.OnesCount(losses); n <= len(l.w.nodes)-l.w.plan.need() {
		l.breach(Truth, "%v is said to be lost: %d of %d nodes say so", o, n, len(l.w.nodes))
	}
}

// released checks that a confirmed release freed the lock.
func (l *ledger) released(o owner) {
	if !l.w.plan.validity() {
		return
	}
	left := 0
	for _, n := range l.w.nodes {
		if kept, forgot := n.holds(o); kept > 0 && !forgot {
			left++
		}
	}
	if left >= l.w.plan.need() {
		l.breach(Truth, "%v is said to be released: %d of %d nodes keep it", o, left, len(l.w.nodes))
	}
}

// word is what an error is.
func word(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, backend.ErrHeld):
		return 1
	case errors.Is(err, backend.ErrLost):
		return 2
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 3
	}
	return 4
}
