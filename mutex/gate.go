package mutex

import (
	"container/list"
	"context"
)

// gate lets the goroutines of one session that want one key through, one at a
// time, first come, first served. It stays shut until the holder has unlocked,
// whatever became of the lease. Gates are kept while somebody needs them.
//
// It is not a semaphore, since whoever unlocks leaves more than the way free to
// the first in line (see Hold.bequeath).
type gate struct {
	key    string
	shut   bool      // under Session.mu, like the rest
	line   list.List // of *attempt: who waits for it to be opened
	needed int       // how many callers and holds refer to it
	holder *Hold     // the hold for which the gate is shut
	locked *Hold     // what Unlock and Current of a Leased are about
	kept   *Hold     // its lease is for who passes next; the gate is open
	apart  bool      // the next who passes keeps off the key for a moment
}

// enter passes the gate of the key, or says why not: the end of ctx or of the
// session, or ErrHeld if the caller only tries.
func (a *attempt) enter(ctx context.Context) error {
	s := a.s
	s.mu.Lock()
	g := s.gate(a.key)
	a.gate = g
	switch {
	case !g.shut:
		g.admit(a)
		a.from = s.unkeep(g)
	case a.try:
		s.drop(g)
		s.mu.Unlock()
		return ErrHeld
	default:
		a.passed = make(chan struct{})
		a.place = g.line.PushBack(a)
	}
	s.mu.Unlock()
	if a.passed == nil {
		return nil
	}
	return a.stand(ctx)
}

// stand waits in the line at the gate.
func (a *attempt) stand(ctx context.Context) error {
	select {
	case <-a.passed:
	case <-ctx.Done():
	case <-a.s.closing.Done():
	}
	err := a.over(ctx)
	if err == nil {
		return nil
	}
	a.s.mu.Lock()
	a.gate.line.Remove(a.place) // does nothing to who has passed
	a.s.mu.Unlock()
	select {
	case <-a.passed:
		a.quit()
	default:
		a.s.leave(a.gate)
	}
	return err
}

// quit leaves the gate to others, and what was left to the caller too.
func (a *attempt) quit() {
	s := a.s
	s.mu.Lock()
	orphan := a.from
	if a.gate.next(a.from) {
		orphan = nil
	}
	s.drop(a.gate)
	s.mu.Unlock()
	if orphan != nil {
		s.abandon(&a.call, orphan.term.lease, nil)
	}
}

// admit lets a through, who shuts the gate.
func (g *gate) admit(a *attempt) {
	g.shut = true
	a.apart, g.apart = g.apart, false
}

// next lets the first in line through, and leaves it the lease of from, which
// may be nil; or it opens the gate, and is false.
func (g *gate) next(from *Hold) bool {
	g.holder = nil
	first := g.line.Front()
	if first == nil {
		g.shut = false
		return false
	}
	a := g.line.Remove(first).(*attempt)
	g.admit(a)
	a.from = from
	close(a.passed)
	return true
}

// gate finds or makes the gate of key, for somebody who needs it; leave and drop
// give it back. s.mu is held, but for leave.
func (s *Session) gate(key string) *gate {
	g := s.gates[key]
	if g == nil {
		if g = s.spare; g == nil {
			g = new(gate)
		}
		s.spare, g.key, s.gates[key] = nil, key, g
	}
	g.needed++
	return g
}

func (s *Session) leave(g *gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(g)
}

func (s *Session) drop(g *gate) {
	if g.needed--; g.needed == 0 {
		delete(s.gates, g.key)
		g.apart = false
		s.spare = g
	}
}

// pass shuts the gate for h, unless the session was closed meanwhile.
func (s *Session) pass(h *Hold, byLock bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	h.gate.holder, h.gate.locked = h, nil
	if byLock {
		h.gate.locked = h
	}
	return true
}

// open opens the gate behind h. Unless keep is set, h is not remembered.
func (s *Session) open(h *Hold, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.gate.next(nil)
	if !keep {
		s.forgetLocked(h)
	}
}

// forget ends the time in which a failed Unlock can be repeated.
func (s *Session) forget(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(h)
}

func (s *Session) forgetLocked(h *Hold) {
	if h.forgotten {
		return
	}
	h.forgotten = true
	if h.gate.locked == h {
		h.gate.locked = nil
	}
	s.drop(h.gate)
}

// claim takes the hold that an Unlock of key is about, so that only one gets it.
func (s *Session) claim(key string) *Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gates[key]
	if g == nil || g.locked == nil {
		return nil
	}
	h := g.locked
	g.locked = nil
	return h
}

// unclaim gives it back when the outcome of the Unlock is unknown, unless
// there is another hold or no time left.
func (s *Session) unclaim(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.forgotten && h.gate.locked == nil && h.gate.holder == nil {
		h.gate.locked = h
	}
}

func (s *Session) current(key string) *Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.gates[key]; g != nil && g.holder != nil {
		return g.locked
	}
	return nil
}
