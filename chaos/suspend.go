package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/distmutex/distmutex/chaos/internal/machine"
)

// sleeper says whether a client is on a machine of its own, which can be
// suspended. Reading a clock takes so much longer there that most are not.
func sleeper(number int) bool { return number%5 == 1 }

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

// adopt takes a client's machine over, as soon as the client has said how it is
// reached; nil, if it has none.
func adopt(c clientConfig, pid int, said io.Reader) (*machine.Machine, error) {
	if !c.Sleeps {
		return nil, nil
	}
	var listener int
	if _, err := fmt.Fscanln(said, &listener); err != nil {
		return nil, fmt.Errorf("client %s does not say how to suspend it: %w", c.ID, err)
	}
	return machine.Adopt(pid, listener)
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

// suspendClient has a machine sleep, whatever else befalls its process.
func suspendClient(n *nemesis, s *strike) {
	able := n.sleepers()
	c := able[s.dice.IntN(len(able))]
	s.Client = c.number
	resume, err := c.suspend()
	if s.failed(err) {
		return
	}
	s.pause(50*ms, 5*n.TTL/2)
	resume()
}
