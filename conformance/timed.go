package conformance

import (
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// What a timed scenario returns: nothing, or why nothing could be judged.
const (
	judged  = ""
	stalled = "the machine stalled"
	late    = "the key was held after the end of the term"
)

// timed runs a scenario with a term that passes while it runs. Where a moment
// was missed, which is nobody's fault, the scenario says so and judges nothing;
// it is repeated with twice the term.
func (t *trial) timed(scenario func(term time.Duration) string) {
	t.Helper()
	key := t.key
	var missed string
	for term := t.short; term < long; term *= 2 {
		t.key = key + term.String()
		if missed = scenario(term); missed == judged {
			return
		}
		t.Logf("with a term of %v: %s", term, missed)
	}
	if missed == stalled {
		t.TB.Fatalf("not checked: the machine stalled each time")
	}
	t.Fatalf("%s, with every term up to %v", missed, long)
}

// gone expects ErrLost of a call after the end of the term. A server may be late
// to end it, though not each time.
func (t *trial) gone(what string, call func() error) string {
	t.Helper()
	err := t.persist(call)
	if err == nil {
		return what + " after the end of the term: nil, want ErrLost"
	}
	if !errors.Is(err, backend.ErrLost) {
		t.Errorf("%s after the end of the term: %v, want ErrLost", what, err)
	}
	return judged
}

// brief takes the key for a term that has to pass. It returns false if so much
// of it has passed already that nothing can be judged.
func (t *trial) brief(b backend.Backend, want backend.Lease) (backend.Lease, bool) {
	t.Helper()
	got, err := t.tryAcquire(b, want)
	if time.Since(want.Start) > want.TTL/2 {
		return got, false
	}
	if err != nil {
		t.Fatalf("Acquire of a key that nobody else holds: %v, want a grant", err)
	}
	return got, true
}

// lapsed takes the key and lets the term pass.
func (t *trial) lapsed(term time.Duration) (backend.Lease, bool) {
	t.Helper()
	held, ok := t.brief(t.b, t.lease(term))
	if ok {
		sleepUntil(surelyOver(time.Now(), term).Add(t.late))
	}
	return held, ok
}

// next takes a key whose lease has lapsed, where the server has ended it in time.
func (t *trial) next(b backend.Backend) (backend.Lease, bool) {
	t.Helper()
	got, err := t.tryAcquire(b, t.lease(long))
	if err != nil && !errors.Is(err, backend.ErrHeld) {
		t.Fatalf("Acquire after the end of the term: %v, want a grant", err)
	}
	return got, err == nil
}

// surelyOver is when a term has ended of which the answer came at a time: for the
// server as well, which may have begun it as late as that.
func surelyOver(answered time.Time, term time.Duration) time.Time {
	return answered.Add(term + backend.Drift(term) + 10*time.Millisecond)
}

func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }

// promptly checks that a call does not wait. A machine may stall once, hardly
// three times.
func (t *trial) promptly(what string, call func()) {
	t.Helper()
	for range 3 {
		began := time.Now()
		call()
		if time.Since(began) < soon {
			return
		}
	}
	t.Errorf("%s took more than %v three times", what, soon)
}
