package mutex

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// gate lets the goroutines of one session that want one key through, one at a
// time, first come, first served. It stays shut until the holder has unlocked,
// whatever became of the lease. Gates are kept while somebody needs them.
type gate struct {
	key    string
	sem    *semaphore.Weighted
	needed int   // how many callers and holds refer to it; under Session.mu, like the rest
	holder *Hold // the hold for which the gate is shut
	locked *Hold // what Unlock and Current of a Leased are about

	waiting int     // how many callers wait at it, and will take what was left
	left    *legacy // a lease for the next who passes
	apart   bool    // the next who passes keeps off the key for a moment
}

// enter passes the gate of key, or says why not: the end of ctx, or ErrHeld if
// try is set.
func (s *Session) enter(ctx context.Context, key string, try bool) (*gate, error) {
	g := s.gate(key)
	var err error
	switch {
	case g.sem.TryAcquire(1):
	case try:
		err = ErrHeld
	default:
		err = s.line(ctx, g)
	}
	if err != nil {
		s.leave(g)
		return nil, err
	}
	return g, nil
}

// line waits at the gate.
func (s *Session) line(ctx context.Context, g *gate) error {
	s.mu.Lock()
	g.waiting++
	s.mu.Unlock()
	err := g.sem.Acquire(ctx, 1)
	s.mu.Lock()
	g.waiting--
	var l *legacy
	if err != nil {
		l = s.disown(g)
	}
	s.mu.Unlock()
	if l != nil {
		s.abandon(ctx, l.term.lease, nil)
	}
	return err
}

// gate finds or makes the gate of key; leave gives it back.
func (s *Session) gate(key string) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gates[key]
	if g == nil {
		if g = s.spare; g == nil {
			g = &gate{sem: semaphore.NewWeighted(1)}
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
		s.spare = g
	}
}

// pass shuts the gate for h, unless the session was closed meanwhile.
func (s *Session) pass(g *gate, h *Hold, byLock bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	g.holder, g.locked = h, nil
	if byLock {
		g.locked = h
	}
	return true
}

// open opens the gate behind h. Unless keep is set, h is not remembered.
func (s *Session) open(h *Hold, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openLocked(h, keep)
}

func (s *Session) openLocked(h *Hold, keep bool) {
	h.gate.holder = nil
	h.gate.sem.Release(1)
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
