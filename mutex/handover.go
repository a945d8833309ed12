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
	next   backend.Token // the first that no hold had; none is left above the lease's
	raises int
}

// apartFor is how long the session keeps off a key after its goroutines have had
// it as long as they may: another process that was told of the release needs a
// round trip to get it.
const apartFor = time.Millisecond

// bequeath leaves the lease to the first who waits at the gate, or keeps it there
// for who comes next, or says that nothing of this can be. The hold has ended, so
// nothing changes its term and its turns any more; h.mu is held.
func (h *Hold) bequeath(now, valid time.Time) bool {
	s := h.s
	if s.o.HandOver < 0 || s.o.MinHold > 0 || h.busy {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := h.gate
	left, turn := valid.Sub(now), s.o.HandOver-now.Sub(h.turns.began)
	switch {
	case s.closed || g.line.Len() == 0 && s.o.Linger == 0 || !s.lasts(h.term, left):
		return false
	case turn <= 0:
		g.apart = true
		return false
	}
	if g.next(h) {
		h.owed = false
		s.forgetLocked(h)
		return true
	}
	g.keep(h)
	s.agenda.set(h, now.Add(min(s.o.Linger, turn, left-s.least(h.term))))
	return true
}

// keep keeps the lease of h for who comes next. It is still owed: whoever takes
// it off the gate, under Session.mu, sees to it.
func (g *gate) keep(h *Hold) {
	g.kept = h
	if g.locked == h {
		g.locked = nil
	}
}

// unkeep takes what the gate keeps off it.
func (s *Session) unkeep(g *gate) *Hold {
	h := g.kept
	if h != nil {
		g.kept = nil
		s.agenda.drop(h)
		s.forgetLocked(h)
	}
	return h
}

// lingered releases the lease that nobody came for. If somebody did, or Close, it
// does nothing.
func (h *Hold) lingered() {
	s := h.s
	s.mu.Lock()
	mine := h.gate.kept == h
	if mine {
		s.unkeep(h.gate)
		s.work++ // before Close looks
	}
	s.mu.Unlock()
	if mine {
		s.abandon(h.base(), h.term.lease, nil)
		s.end()
	}
}

// succeed makes a hold of the lease that was left to the attempt. If nothing can
// be made of it, it is given up, and the hold is nil.
func (a *attempt) succeed(ctx context.Context) (*Hold, error) {
	t, later := a.from.term, a.from.turns
	a.from = nil
	a.want, a.slept, a.owed = t.lease, t.slept, true
	if later.next > a.want.Token && a.want.Token > 0 && !a.raise(ctx, &t, &later) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		a.s.abandon(ctx, a.want, nil)
		a.owed = false
		return nil, nil
	}
	now := time.Now()
	a.limit = now.Add(a.s.o.MaxHold)
	token := later.next
	if token > 0 {
		later.next++
	}
	return a.hold(ctx, now, t, token, later)
}

// raise gets the lease more tokens, four times as many each time, up to 4096.
//
// If the key was lost, the same call is granted it anew, and tokens below may be
// another's: within the old validity too, where somebody deleted the key by hand.
// So the backend says from which on they are not.
func (a *attempt) raise(ctx context.Context, t *term, later *turns) bool {
	want := t.lease
	want.Token += 16 << min(2*later.raises, 8)
	got, err := a.s.b.Acquire(ctx, want)
	now := time.Now()
	if err != nil || got.Token < want.Token || t.until(now, a.s.meter).Sub(now) <= lead {
		return false
	}
	later.raises++
	later.next = max(later.next, cmp.Or(got.First, got.Token))
	t.lease.Token = got.Token
	a.want = t.lease
	return true
}
