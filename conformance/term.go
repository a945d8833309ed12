package conformance

import (
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var termChecks = []check{
	{"term/lasts", 2, "A lease lasts to the end of its validity, though nobody renews it.", expiry, termLasts},
	{"term/ends", 10, "A lease that nobody renews or releases ends by itself at the end of its term, however often others ask for it.", expiry, termEnds},
	{"term/shortest", 2, "The shortest valid term is granted, and ends.", expiry, termShortest},
	{"term/again", 10, "A key whose lease ran out can be held again, by the same client too.", expiry, termAgain},
}

func termLasts(t *trial) {
	t.timed(func(term time.Duration) string {
		held, ok := t.brief(t.b, t.lease(term))
		if !ok {
			return stalled
		}
		refusals := 0
		for t.refusedUntil(held.Until()) == judged {
			refusals++
			time.Sleep(term / 20)
		}
		if refusals < 3 {
			return stalled
		}
		return judged
	})
}

// Case 17.
func termEnds(t *trial) {
	t.timed(func(term time.Duration) string {
		if _, ok := t.brief(t.b, t.lease(term)); !ok {
			return stalled
		}
		answered := time.Now() // the server's term began before
		for {
			began := time.Now()
			got, err := t.tryAcquire(t.peer, t.lease(long))
			if err == nil {
				t.release(t.peer, got)
				return judged
			}
			if !errors.Is(err, backend.ErrHeld) {
				t.Fatalf("Acquire: %v, want a grant or ErrHeld", err)
			}
			if over := began.Sub(answered) - term; over > soon+t.late {
				t.Fatalf("a term of %v still goes on %v after its end", term, over)
			}
			time.Sleep(term / 10)
		}
	})
}

func termShortest(t *trial) {
	// On a busy machine so short a term may be over before the answer comes,
	// which is reported as an error: the outcome is unknown, the input valid.
	_, err := t.b.Acquire(t.ctx, t.lease(backend.MinTTL))
	if err != nil && !t.unknown(err) {
		t.Errorf("Acquire for %v: %v, want a grant", backend.MinTTL, err)
	}
	time.Sleep(t.late)
	t.free()
}

func termAgain(t *trial) {
	t.timed(func(term time.Duration) string {
		if _, ok := t.lapsed(term); !ok {
			return stalled
		}
		next, ok := t.next(t.b)
		if !ok {
			return late
		}
		t.holds(next)
		t.release(t.b, next)
		return judged
	})
}
