package conformance

import (
	"time"

	"github.com/distmutex/distmutex/backend"
)

var releaseChecks = []check{
	{"release/frees", 10, "A key is free once it was released.", 0, releaseFrees},
	{"release/repeat", 4, "A Release repeated within the term, as after a lost reply, is nil.", 0, releaseRepeat},
	{"release/spares-next", 3, "A Release repeated after another got the key is ErrLost and takes nothing from it.", 0, releaseSparesNext},
	{"release/foreign", 3, "A Release by anybody but the holder takes nothing from it.", 0, releaseForeign},
	{"release/after-expiry", 4, "A Release after the end of the term is ErrLost.", expiry, releaseAfterExpiry},
	{"release/after-renewal", 4, "A Release repeated within the term that a Renew began is nil.", expiry, releaseAfterRenewal},
	{"release/taken", 3, "A Release of a lease that ran out, of a key that another holds, is ErrLost and takes nothing from it.", expiry, releaseTaken},
	{"release/never-granted", 10, "A lease that was never granted may be released: nothing comes of it, and nobody is harmed.", 0, releaseNeverGranted},
}

func releaseFrees(t *trial) {
	for _, b := range []backend.Backend{t.b, t.peer} {
		t.release(b, t.acquire(b, t.lease(long)))
		t.free()
	}
}

// Case 35.
func releaseRepeat(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	for range 3 {
		t.release(t.b, held)
	}
	t.free()
}

// Cases 33 and 38.
func releaseSparesNext(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	t.release(t.b, held)
	next := t.acquire(t.b, t.lease(long)) // through the same client
	t.lostRelease("repeated after another got the key", t.b, held)
	t.lostRelease("repeated after another got the key", t.peer, held)
	t.holds(next)
	t.release(t.b, next)
}

func releaseForeign(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	other := t.lease(long)
	other.Token = max(held.Token, 1)
	t.lostRelease("by another than the holder", t.b, other)
	t.lostRelease("by another than the holder", t.peer, other)
	t.holds(held)
	t.release(t.b, held)
}

// Case 36.
func releaseAfterExpiry(t *trial) {
	t.timed(func(term time.Duration) string {
		held, ok := t.lapsed(term)
		if !ok {
			return stalled
		}
		missed := judged
		if !t.unfenced { // without a token nil is right as well
			missed = t.gone("Release", func() error { return t.b.Release(t.ctx, held) })
		}
		t.free()
		return missed
	})
}

func releaseAfterRenewal(t *trial) {
	t.timed(func(term time.Duration) string {
		held, ok := t.brief(t.b, t.lease(term))
		if !ok {
			return stalled
		}
		sleepUntil(held.Start.Add(term / 2))
		first := held
		held.Start = time.Now()
		err := t.persist(func() error { return t.b.Renew(t.ctx, held) })
		if !time.Now().Before(first.Until()) {
			return stalled
		}
		if err != nil {
			t.Fatalf("Renew %v before the end of validity: %v, want nil", time.Until(first.Until()), err)
		}
		sleepUntil(first.Start.Add(term * 12 / 10)) // after the first term, within the second
		for range 2 {
			err = t.tryRelease(t.b, held)
			if !time.Now().Before(held.Until()) {
				return stalled
			}
			if err != nil {
				t.Fatalf("Release %v before the end of validity: %v, want nil", time.Until(held.Until()), err)
			}
		}
		return judged
	})
}

func releaseTaken(t *trial) {
	t.timed(func(term time.Duration) string {
		held, ok := t.lapsed(term)
		if !ok {
			return stalled
		}
		next, ok := t.next(t.peer)
		if !ok {
			return late
		}
		t.lostRelease("while another holds", t.b, held)
		t.refused(t.b)
		t.renew(t.peer, next)
		t.release(t.peer, next)
		return judged
	})
}

func releaseNeverGranted(t *trial) {
	t.undo(t.b, t.lease(long)) // of a key that is free
	t.free()

	held := t.acquire(t.b, t.lease(long))
	t.undo(t.peer, t.lease(long))
	t.holds(held)
	t.release(t.b, held)

	// The reply to the grant was lost, so the caller knows of no token.
	want := t.lease(long)
	t.acquire(t.b, want)
	t.undo(t.b, want)
	t.undo(t.b, want)
	t.free()
}
