package main

import (
	"context"
	"errors"
	"time"
)

// sleeps says whether a client is on a machine of its own, which can be
// suspended. Reading a clock takes so much longer there that most are not.
func sleeps(number int) bool { return number%5 == 1 }

// sleepers are the clients that can be suspended.
func (w *world) sleepers() (all []*slot) {
	for _, s := range w.clients {
		if s.config.Sleeps {
			all = append(all, s)
		}
	}
	return all
}

// start starts all clients; where one can't be suspended, without that.
func (w *world) start() {
	w.tb.Helper()
	for _, s := range w.clients {
		err := s.start(w.Dir)
		if err != nil && s.config.Sleeps {
			w.tb.Logf("not checked: what comes of suspended machines: %v", err)
			s.kill()
			s.config.Sleeps = false
			err = s.start(w.Dir)
		}
		if err != nil {
			w.tb.Fatal(err)
		}
	}
}

// suspend puts the process to sleep, and says what ends that.
func (s *slot) suspend() (resume func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machine
	if m == nil {
		return nil, errors.New("it could not be started again")
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		m.Resume() // fails if it was killed meanwhile
	}, m.Suspend()
}

// sleeper is one of the clients that can be suspended.
func (n *nemesis) sleeper(s *strike) *slot {
	able := n.sleepers()
	c := able[s.dice.IntN(len(able))]
	s.Client = c.number
	return c
}

// suspendClient has a machine sleep, whatever else befalls its process.
func suspendClient(n *nemesis, s *strike) { n.suspend(s, n.sleeper(s), 50*ms) }

// suspendHolder has a machine sleep for longer than a lease, from when a worker on
// it comes in by a lock.
func suspendHolder(n *nemesis, s *strike) {
	c := n.sleeper(s)
	before := n.resource.turnsAt(c.number)
	for begun := time.Now(); n.resource.turnsAt(c.number) == before; time.Sleep(ms) {
		if s.ctx.Err() != nil || time.Since(begun) > 4*n.TTL {
			s.failed(context.DeadlineExceeded)
			return
		}
	}
	n.suspend(s, c, 5*n.TTL/4)
}

func (n *nemesis) suspend(s *strike, c *slot, shortest time.Duration) {
	resume, err := c.suspend()
	if s.failed(err) {
		return
	}
	s.pause(shortest, 5*n.TTL/2)
	resume()
}
