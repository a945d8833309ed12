package conformance

import (
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var acquireChecks = []check{
	{"acquire/grant", 2, "A grant is the lease asked for, with a term no longer than asked and, if fenced, a token above zero.", 0, grant},
	{"acquire/start", 2, "The term of a grant counts from the instant that the caller gave, never from a later one; a repeat does not move it.", 0, grantStart},
	{"acquire/repeat", 4, "The same Acquire sent twice, as after a lost reply, is granted twice with one token, and is one hold to release.", 0, repeat},
	{"acquire/repeat-renews", 4, "A repeated Acquire starts the term anew.", expiry, repeatRenews},
	{"acquire/repeat-never-shortens", 4, "A repeated Acquire never shortens the term.", expiry, repeatNeverShortens},
	{"acquire/refusal-is-prompt", 12, "Acquire never waits for a holder.", 0, refusalIsPrompt},
	{"acquire/refusal-leaves-nothing", 10, "An attempt that was refused never gets the key later.", 0, refusalLeavesNothing},
	{"acquire/refusal-changes-nothing", 3, "A refused attempt changes neither the holder's lease nor its token.", 0, refusalChangesNothing},
}

func grant(t *trial) {
	for _, ttl := range []time.Duration{long, 7777 * time.Millisecond, time.Second} {
		want := t.lease(ttl)
		got := t.acquire(t.b, want)
		if got.Key != want.Key || got.Owner != want.Owner {
			t.Errorf("granted key %q and owner: want %q and the owner that asked", got.Key, want.Key)
		}
		if got.TTL <= 0 || got.TTL > ttl {
			t.Errorf("granted a term of %v, want more than 0 and at most the %v asked for", got.TTL, ttl)
		}
		if got.Token < 0 || got.Token == 0 && !t.unfenced {
			t.Errorf("granted token %d with Unfenced = %v", got.Token, t.unfenced)
		}
		t.release(t.b, got)
	}
}

func grantStart(t *trial) {
	want := t.lease(long)
	for range 2 {
		time.Sleep(20 * time.Millisecond)
		if got := t.acquire(t.b, want); !got.Start.Equal(want.Start) {
			t.Errorf("the term counts from %v after the instant given, want from that instant", got.Start.Sub(want.Start))
		}
	}
	want = t.lease(long)
	want.Key += "'"
	want.Start = time.Time{}
	before := time.Now()
	got := t.acquire(t.b, want)
	if !got.Start.IsZero() && (got.Start.Before(before) || got.Start.After(time.Now())) {
		t.Errorf("without an instant given, the term counts from %v, want none or the moment of the call, %v", got.Start, before)
	}
}

// Case 1.
func repeat(t *trial) {
	want := t.lease(long)
	first := t.acquire(t.b, want)
	for range 3 {
		if again := t.acquire(t.b, want); again.Token != first.Token {
			t.Errorf("repeated: token %d, want %d as the first time", again.Token, first.Token)
		}
	}
	t.refused(t.peer)
	t.release(t.b, first)
	t.free()
}

func repeatRenews(t *trial) {
	t.timed(func(term time.Duration) string {
		first, ok := t.brief(t.b, t.lease(term))
		if !ok {
			return stalled
		}
		granted := time.Now()
		sleepUntil(first.Start.Add(term * 6 / 10))
		began := time.Now()
		_, err := t.tryAcquire(t.b, first)
		if !time.Now().Before(first.Until()) {
			return stalled
		}
		if err != nil {
			t.Fatalf("Acquire repeated %v before the end of validity: %v, want a grant", time.Until(first.Until()), err)
		}
		sleepUntil(surelyOver(granted, term))
		return t.refusedUntil(began.Add(term - backend.Drift(term)))
	})
}

// refusedUntil checks that a peer is refused, where the answer came in time to
// judge it.
func (t *trial) refusedUntil(end time.Time) string {
	t.Helper()
	got, err := t.tryAcquire(t.peer, t.lease(long))
	switch {
	case !time.Now().Before(end):
		if err == nil {
			t.release(t.peer, got)
		}
		return stalled
	case err == nil:
		t.Fatalf("another was granted the key (token %d) %v before the end of the holder's term", got.Token, time.Until(end))
	case !errors.Is(err, backend.ErrHeld):
		t.Fatalf("Acquire of a key that another holds: %v, want ErrHeld", err)
	}
	return judged
}

func repeatNeverShortens(t *trial) {
	want := t.lease(long)
	first := t.acquire(t.b, want)
	want.TTL = 50 * time.Millisecond
	again, err := t.tryAcquire(t.b, want)
	// An answer may come too late to be of use for the short term: it is the
	// lease on the server that is looked at.
	if err == nil && again.Token != first.Token {
		t.Errorf("repeated with a shorter term: token %d, want %d as the first time", again.Token, first.Token)
	}
	time.Sleep(2 * want.TTL)
	t.holds(first)
}

func refusalIsPrompt(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	t.promptly("refusing an attempt", func() { t.refused(t.peer) })
	t.release(t.b, held)
}

func refusalLeavesNothing(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	for range 3 {
		t.refused(t.peer)
		t.refused(t.b)
	}
	time.Sleep(50 * time.Millisecond) // for what is still on its way
	t.release(t.b, held)
	t.free()
}

func refusalChangesNothing(t *trial) {
	want := t.lease(long)
	held := t.acquire(t.b, want)
	for _, b := range []backend.Backend{t.peer, t.b} {
		greedy := t.lease(long)
		if !t.unfenced {
			greedy.Token = held.Token + 1000
		}
		if _, err := t.tryAcquire(b, greedy); !errors.Is(err, backend.ErrHeld) {
			t.Fatalf("Acquire of a key that another holds: %v, want ErrHeld", err)
		}
		if again := t.acquire(t.b, want); again.Token != held.Token {
			t.Errorf("after the refusal of another the holder's token is %d, want %d as before", again.Token, held.Token)
		}
	}
	t.release(t.b, held)
}
