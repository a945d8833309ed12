package conformance

import (
	"time"

	"github.com/distmutex/distmutex/backend"
)

var tokenChecks = []check{
	{"tokens/over-release", 5, "A hold's token is larger than those of all earlier holds of the key, which were released.", fencing, tokensOverRelease},
	{"tokens/over-expiry", 5, "A hold's token is larger than those of all earlier holds of the key, which ran out.", fencing, tokensOverExpiry},
	{"tokens/over-repeats", 5, "A hold's token is larger than those of all earlier holds of the key, whatever was refused or repeated between.", fencing, tokensOverRepeats},
	{"tokens/floor", 5, "A new grant is at least the floor asked for, and above all earlier tokens even if the floor is not.", fencing, tokenFloor},
	{"tokens/exact", 5, "Tokens of sixteen digits are exact.", fencing, tokensExact},
	{"tokens/fast-clock", 5, "Tokens rise whatever a client's clock says.", fencing, tokensFastClock},
}

// rising takes the key and releases it, and checks that its token is above last.
func (t *trial) rising(b backend.Backend, want backend.Lease, last backend.Token) backend.Token {
	t.Helper()
	got := t.acquire(b, want)
	if got.Token <= last {
		t.Fatalf("token %d, want more than the %d before", got.Token, last)
	}
	t.release(b, got)
	return got.Token
}

func tokensOverRelease(t *trial) {
	var last backend.Token
	for range 10 {
		last = t.rising(t.b, t.lease(long), last)
		last = t.rising(t.peer, t.lease(long), last)
	}
}

// Case 46.
func tokensOverExpiry(t *trial) {
	t.timed(func(term time.Duration) string {
		var last backend.Token
		for range 2 {
			held, ok := t.lapsed(term)
			if !ok {
				return stalled
			}
			if held.Token <= last {
				t.Fatalf("token %d after a lease with %d ran out, want a larger one", held.Token, last)
			}
			next, ok := t.next(t.peer)
			if !ok {
				return late
			}
			if last = next.Token; last <= held.Token {
				t.Fatalf("token %d after a lease with %d ran out, want a larger one", last, held.Token)
			}
			t.release(t.peer, next)
		}
		return judged
	})
}

// Case 46.
func tokensOverRepeats(t *trial) {
	var last backend.Token
	for range 5 {
		want := t.lease(long)
		held := t.acquire(t.b, want)
		if held.Token <= last {
			t.Fatalf("token %d, want more than the %d before", held.Token, last)
		}
		last = held.Token
		t.refused(t.peer)
		t.acquire(t.b, want)
		t.renew(t.b, held)
		t.lost("Renew by another than the holder", func() error { return t.peer.Renew(t.ctx, t.lease(long)) })
		t.release(t.b, held)
		t.release(t.b, held)
	}
}

func tokenFloor(t *trial) {
	want := t.lease(long)
	want.Token = 1 << 40
	last := t.rising(t.b, want, want.Token-1)
	for _, floor := range []backend.Token{0, 1, last - 1, last, last + 1, last + 500} {
		want := t.lease(long)
		want.Token = floor
		last = t.rising(t.peer, want, max(last, floor-1))
	}
}

// A double has 53 bits, Lua's tostring fourteen digits. The floor is above
// all tokens from clocks and leaves room for those who share the store.
func tokensExact(t *trial) {
	last := t.rising(t.b, t.lease(long), 0)
	want := t.lease(long)
	want.Token = max(last, 1<<52) + 101
	held := t.acquire(t.b, want)
	if held.Token != want.Token {
		t.Errorf("token %d for a floor of %d, above all before", held.Token, want.Token)
	}
	want.Token += 2
	if held = t.acquire(t.b, want); held.Token != want.Token {
		t.Errorf("token %d raised to %d", held.Token, want.Token)
	}
	t.release(t.b, held)
	last = held.Token
	for range 20 {
		last = t.rising(t.peer, t.lease(long), last)
	}
}

func tokensFastClock(t *trial) {
	var last backend.Token
	for _, ahead := range []time.Duration{time.Hour, 0, 24 * 365 * time.Hour, time.Minute, 0} {
		want := t.lease(long)
		want.Start = want.Start.Add(ahead)
		last = t.rising(t.b, want, last)
	}
}

var raiseChecks = []check{
	{"raise/larger", 5, "The holder's Acquire with a larger token raises its token to that one.", fencing, raiseLarger},
	{"raise/smaller", 5, "The holder's Acquire with no larger token leaves its token as it is.", fencing, raiseSmaller},
	{"raise/repeat", 5, "A raise sent twice raises once.", fencing, raiseRepeat},
	{"raise/next-above", 5, "The next holder's token is above all that a raise reserved.", fencing, raiseNextAbove},
	{"raise/first", 5, "The tokens that a grant claims from First on were no other's, though the term ended before a raise.", fencing | expiry, raiseFirst},
	{"raise/foreign", 5, "Only the holder raises its token.", fencing, raiseForeign},
}

// raise asks for the holder's key again, with a token.
func (t *trial) raise(want backend.Lease, to, result backend.Token) {
	t.Helper()
	want.Token = to
	if got := t.acquire(t.b, want); got.Token != result {
		t.Errorf("the holder asked for %d: token %d, want %d", to, got.Token, result)
	}
}

func raiseLarger(t *trial) {
	want := t.lease(long)
	held := t.acquire(t.b, want)
	t.raise(want, held.Token+1, held.Token+1)
	t.raise(want, held.Token+1000, held.Token+1000)
	t.holds(held)
	t.release(t.b, held)
}

func raiseSmaller(t *trial) {
	want := t.lease(long)
	want.Token = 1 << 40
	held := t.acquire(t.b, want)
	for _, to := range []backend.Token{0, 1, held.Token - 1, held.Token} {
		t.raise(want, to, held.Token)
	}
	t.release(t.b, held)
}

func raiseRepeat(t *trial) {
	want := t.lease(long)
	held := t.acquire(t.b, want)
	to := held.Token + 100
	t.raise(want, to, to)
	t.raise(want, to, to)
	t.raise(want, 0, to)
	t.release(t.b, held)
}

func raiseNextAbove(t *trial) {
	want := t.lease(long)
	held := t.acquire(t.b, want)
	to := held.Token + 1000
	t.raise(want, to, to)
	t.release(t.b, held) // by its first token: the owner counts
	t.rising(t.peer, t.lease(long), to)
}

func raiseFirst(t *trial) {
	t.timed(func(term time.Duration) string {
		held, ok := t.lapsed(term)
		if !ok {
			return stalled
		}
		t.claims(held, 0)
		other, ok := t.next(t.peer)
		if !ok {
			return late
		}
		t.claims(other, held.Token)
		raised := other
		raised.Token += 100
		raised = t.acquire(t.peer, raised)
		t.claims(raised, held.Token)
		t.release(t.peer, raised)

		held.Token, held.TTL = raised.Token+100, long // so that no answer comes too late
		if again, err := t.tryAcquire(t.b, held); err == nil {
			t.claims(again, raised.Token)
		}
		t.undo(t.b, held)
		return judged
	})
}

// claims checks that a grant claims no token up to last, and ends at its own.
func (t *trial) claims(got backend.Lease, last backend.Token) {
	t.Helper()
	if got.First != 0 && (got.First <= last || got.First > got.Token) {
		t.Errorf("a grant of token %d says that all from %d on are its own; %d was another's", got.Token, got.First, last)
	}
}

func raiseForeign(t *trial) {
	want := t.lease(long)
	held := t.acquire(t.b, want)
	other := t.lease(long)
	other.Token = held.Token + 1000
	if got, err := t.tryAcquire(t.peer, other); err == nil {
		t.Fatalf("a raise by another than the holder: granted with token %d, want ErrHeld", got.Token)
	}
	t.lost("Renew by another than the holder", func() error { return t.peer.Renew(t.ctx, other) })
	t.raise(want, 0, held.Token)
	t.release(t.b, held)
}
