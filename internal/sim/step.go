package sim

import "time"

// Verb is how a step gets its lock.
type Verb int

const (
	Hold Verb = iota
	Lock
	TryLock
	Do
	Close // the session, and go on with another
	verbs
)

// Step is one thing that a client does.
type Step struct {
	Verb     Verb
	Key      int
	Pause    time.Duration // before
	Patience time.Duration // after which it gives up; so it also cancels at any moment
	Writes   int           // how often it uses the resource
	Work     time.Duration // before each write
	Stop     time.Duration // between the check and the use of the last write
	Keep     bool          // it does not unlock: the hold ends as it may
	Hasty    bool          // it unlocks with a context that has ended
}

func (p *Plan) program(r *rolls) []Step {
	var all []Step
	for range 2 + r.n(5) {
		all = append(all, p.step(r))
	}
	return all
}

func (p *Plan) step(r *rolls) Step {
	s := Step{
		Verb:     []Verb{Hold, Hold, Lock, Lock, TryLock, Do}[r.n(6)],
		Pause:    r.below(60 * ms),
		Patience: r.between(20*ms, 500*ms),
		Writes:   1 + r.n(3),
		Work:     r.below(30 * ms),
		Keep:     r.percent(8),
		Hasty:    r.percent(10),
	}
	switch {
	case r.percent(25):
		s.Key = 1
	case r.percent(4):
		s.Verb = Close
	}
	if r.percent(20) {
		s.Work = r.below(p.TTL)
	}
	if r.percent(15) {
		s.Stop = r.below(3 * p.TTL)
	}
	if r.percent(20) {
		s.Patience = r.below(30 * ms)
	}
	return s
}
