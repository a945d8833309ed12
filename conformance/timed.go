package conformance

import (
	"time"

	"github.com/distmutex/distmutex/backend"
)

// timed runs a scenario with a term that passes while it runs. The scenario
// returns false, and judges nothing, if the machine stalled and a moment was
// missed; it is then repeated with twice the term.
func (t *trial) timed(scenario func(term time.Duration) bool) {
	t.Helper()
	key := t.key
	for i := range 6 {
		t.key = key + string(rune('a'+i))
		term := t.short << i
		if scenario(term) {
			return
		}
		t.Logf("the machine stalled: repeated with more than %v", term)
	}
	t.TB.Fatalf("not checked: the machine stalled in every scenario")
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
		// Counted from the answer: then the server's term is over as well.
		time.Sleep(term + t.late + backend.Drift(term) + 10*time.Millisecond)
	}
	return held, ok
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
