package mutex

import "time"

// SetSlept makes the session believe that the machine has slept as long as
// read says.
func (l *Leased) SetSlept(read func() time.Duration) {
	m := l.s.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = func(time.Duration) time.Duration {
		m.known = false // ask again next time
		return read()
	}
	m.known = false
}

// Gates is how many keys the session keeps in mind.
func (s *Session) Gates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.gates)
}

// Planned is how many holds the agenda has.
func (s *Session) Planned() int {
	s.agenda.mu.Lock()
	defer s.agenda.mu.Unlock()
	return len(s.agenda.holds)
}

func (l *Leased) Session() *Session { return l.s }

// Suspended is what the kernel says.
func Suspended() time.Duration { return suspended(0) }
