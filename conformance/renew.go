package conformance

import (
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var renewChecks = []check{
	{"renew/extends", 2, "Renew starts the term anew.", expiry, renewExtends},
	{"renew/longer", 2, "A Renew for longer than the term before grants all of it, or fails and loses nothing.", expiry, renewLonger},
	{"renew/repeat", 4, "The same Renew sent twice, as after a lost reply, succeeds twice.", 0, renewRepeat},
	{"renew/keeps-token", 5, "Renew does not move the token of the lease.", fencing, renewKeepsToken},
	{"renew/asserts-token", 5, "Grants after a Renew are above the token that it asserted.", fencing, renewAssertsToken},
	{"renew/foreign", 3, "Renew by anybody but the holder is ErrLost and changes nothing.", 0, renewForeign},
	{"renew/after-release", 3, "Renew of a lease that was released is ErrLost and never creates it again.", 0, renewAfterRelease},
	{"renew/after-expiry", 3, "Renew of a lease that ran out is ErrLost and never creates it again.", expiry, renewAfterExpiry},
	{"renew/after-another", 3, "Renew of a lease that ran out is ErrLost while another holds the key, and after another has held it.", expiry, renewAfterAnother},
}

func renewExtends(t *trial) {
	t.timed(func(term time.Duration) string {
		held, ok := t.brief(t.b, t.lease(term))
		if !ok {
			return stalled
		}
		for range 4 {
			sleepUntil(held.Start.Add(term / 2))
			began := time.Now()
			renewed := held
			renewed.Start = began
			err := t.persist(func() error { return t.b.Renew(t.ctx, renewed) })
			if !time.Now().Before(held.Until()) {
				return stalled
			}
			if err != nil {
				t.Fatalf("Renew %v before the end of validity: %v, want nil", time.Until(held.Until()), err)
			}
			held = renewed
		}
		sleepUntil(held.Start.Add(term * 8 / 10))
		return t.refusedUntil(held.Until())
	})
}

func renewLonger(t *trial) {
	t.timed(func(term time.Duration) string {
		held, ok := t.brief(t.b, t.lease(term))
		if !ok {
			return stalled
		}
		longer := held
		longer.TTL, longer.Start = long, time.Now()
		err := t.persist(func() error { return t.b.Renew(t.ctx, longer) })
		if !time.Now().Before(held.Until()) {
			return stalled
		}
		if errors.Is(err, backend.ErrLost) {
			t.Fatalf("Renew %v before the end of validity: %v", time.Until(held.Until()), err)
		}
		if err != nil {
			return t.refusedUntil(held.Until())
		}
		sleepUntil(surelyOver(time.Now(), term))
		t.refused(t.peer)
		t.release(t.b, longer)
		return judged
	})
}

// Case 22.
func renewRepeat(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	for range 3 {
		t.renew(t.b, held)
	}
	t.holds(held)
	t.release(t.b, held)
	t.free()
}

func renewKeepsToken(t *trial) {
	want := t.lease(long)
	held := t.acquire(t.b, want)
	for range 3 {
		t.renew(t.b, held)
		if again := t.acquire(t.b, want); again.Token != held.Token {
			t.Errorf("after a Renew the token is %d, want %d as before", again.Token, held.Token)
		}
	}
	t.release(t.b, held)
}

func renewAssertsToken(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	// As a quorum's lease, whose token was agreed upon with other nodes.
	held.Token += 1000
	t.renew(t.b, held)
	t.release(t.b, held)
	if next := t.acquire(t.peer, t.lease(long)); next.Token <= held.Token {
		t.Errorf("token %d after a Renew with %d, want a larger one", next.Token, held.Token)
	}
}

func renewForeign(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	other := t.lease(long)
	other.Token = held.Token
	t.lost("Renew by another than the holder", func() error { return t.b.Renew(t.ctx, other) })
	t.lost("Renew by another than the holder", func() error { return t.peer.Renew(t.ctx, other) })
	t.holds(held)
	t.release(t.b, held)
	t.lost("Renew of a lease that never was", func() error { return t.peer.Renew(t.ctx, other) })
	t.free()
}

// Cases 20 and 24.
func renewAfterRelease(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	t.renew(t.b, held)
	t.release(t.b, held)
	t.lost("Renew after Release", func() error { return t.b.Renew(t.ctx, held) })
	t.free()
}

// Case 24.
func renewAfterExpiry(t *trial) {
	t.timed(func(term time.Duration) string {
		held, ok := t.lapsed(term)
		if !ok {
			return stalled
		}
		held.TTL = long
		missed := t.gone("Renew", func() error { return t.b.Renew(t.ctx, held) })
		if missed == judged {
			t.free()
		}
		return missed
	})
}

// Case 24, after another has held the key.
func renewAfterAnother(t *trial) {
	t.timed(func(term time.Duration) string {
		held, ok := t.lapsed(term)
		if !ok {
			return stalled
		}
		held.TTL = long
		next, ok := t.next(t.peer)
		if !ok {
			return late
		}
		t.lost("Renew while another holds", func() error { return t.b.Renew(t.ctx, held) })
		t.renew(t.peer, next)
		t.release(t.peer, next)
		t.lost("Renew after another held", func() error { return t.b.Renew(t.ctx, held) })
		t.free()
		return judged
	})
}
