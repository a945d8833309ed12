package mutex

import (
	"cmp"
	"context"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// turns is what goroutines of one session make of one lease: they hold it one
// after the other, each with a token of its own, and only the last releases it
// (lock cohorting: Dice, Marathe, Shavit, "Lock Cohorting", PPoPP 2012).
//
// A raise gets a range of tokens that nobody had, and later grants are above it.
// So one call of the backend is good for many turns.
type turns struct {
	began  time.Time     // when the backend granted the lease
	from   time.Time     // from when MaxHold counts for the one who has it
	next   backend.Token // the first that no hold had; none is left above the lease's
	raises int
}

// legacy is a lease that the goroutine which passes the gate next may have.
type legacy struct {
	term  term
	turns turns
}

// apartFor is how long the session keeps off a key after its goroutines have had
// it as long as they may: another process that was told of the release needs a
// round trip to get it.
const apartFor = time.Millisecond

// bequeath opens the gate and leaves the lease to whoever waits at it, or says
// that nothing of this can be. The hold has ended; h.mu is held.
func (h *Hold) bequeath(now time.Time) bool {
	s := h.s
	left := h.term.until(now, s.meter).Sub(now)
	if s.o.HandOver < 0 || s.o.MinHold > 0 || h.busy || !s.lasts(h.term, left) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := h.gate
	switch {
	case s.closed || g.waiting == 0:
		return false
	case now.Sub(h.turns.began) >= s.o.HandOver:
		g.apart = true
		return false
	}
	h.owed = false
	g.left = &legacy{h.term, h.turns}
	s.openLocked(h, false)
	return true
}

// inherit takes what was left at the gate, which the caller has passed.
func (s *Session) inherit(g *gate) (l *legacy, apart bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, apart = g.left, g.apart
	g.left, g.apart = nil, false
	return l, apart
}

// disown takes what was left to a waiter who went away, if no other is there to
// have it. s.mu is held.
func (s *Session) disown(g *gate) *legacy {
	if g.left == nil || g.waiting > 0 || !g.sem.TryAcquire(1) {
		return nil
	}
	defer g.sem.Release(1)
	l := g.left
	g.left = nil
	return l
}

// succeed makes a hold of what was left at the gate. If nothing can be made of
// it, it is given up, and the hold is nil.
func (a *attempt) succeed(ctx context.Context, g *gate, l *legacy) (*Hold, error) {
	a.want, a.slept, a.owed = l.term.lease, l.term.slept, true
	if l.turns.next > a.want.Token && a.want.Token > 0 && !a.raise(ctx, l) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		a.s.abandon(ctx, a.want, nil)
		a.owed = false
		return nil, nil
	}
	l.turns.from = time.Now()
	token := l.turns.next
	if token > 0 {
		l.turns.next++
	}
	return a.hold(ctx, g, l.term, token, l.turns)
}

// raise gets the lease more tokens, four times as many each time, up to 4096.
//
// If the key was lost, the same call is granted it anew, and tokens below may be
// another's: within the old validity too, where somebody deleted the key by hand.
// So the backend says from which on they are not.
func (a *attempt) raise(ctx context.Context, l *legacy) bool {
	want := l.term.lease
	want.Token += 16 << min(2*l.turns.raises, 8)
	got, err := a.s.b.Acquire(ctx, want)
	now := time.Now()
	if err != nil || got.Token < want.Token || l.term.until(now, a.s.meter).Sub(now) <= lead {
		return false
	}
	l.turns.raises++
	l.turns.next = max(l.turns.next, cmp.Or(got.First, got.Token))
	l.term.lease.Token = got.Token
	a.want = l.term.lease
	return true
}
