package conformance

import (
	"errors"

	"github.com/distmutex/distmutex/backend"
)

var lostChecks = []check{
	{"lost/acquire", 4, "An Acquire whose reply was lost is repeated with one token, and is one hold to release.", losing, lostAcquire},
	{"lost/renew", 4, "A Renew whose reply was lost loses nothing, and is repeated.", losing, lostRenew},
	{"lost/release", 4, "A Release whose reply was lost frees the key, and is nil when repeated.", losing, lostRelease},
	{"lost/refusal", 12, "An Acquire whose refusal was lost is no grant, and is refused when repeated.", losing, lostRefusal},
	{"lost/undone", 10, "An Acquire whose reply was lost is undone by its Release.", losing, lostUndone},
}

func lostAcquire(t *trial) {
	for range 3 {
		want := t.lease(long)
		t.loseReply(t.b, want)
		first := t.acquire(t.b, want)
		if again := t.acquire(t.b, want); again.Token != first.Token {
			t.Errorf("repeated: token %d, want %d as the first time", again.Token, first.Token)
		}
		t.refused(t.peer)
		t.release(t.b, first)
		t.free()
	}
}

func lostRenew(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	for range 3 {
		t.loseReply(t.b, held)
		t.renew(t.b, held)
		t.refused(t.peer)
	}
	t.holds(held)
	t.release(t.b, held)
	t.free()
}

func lostRelease(t *trial) {
	for range 3 {
		held := t.acquire(t.b, t.lease(long))
		t.loseReply(t.b, held)
		t.release(t.b, held)
		t.release(t.b, held)
		t.free()
	}
}

func lostRefusal(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	for range 3 {
		other := t.lease(long)
		t.loseReply(t.peer, other)
		if got, err := t.tryAcquire(t.peer, other); err == nil {
			t.Fatalf("an attempt whose refusal was lost: granted with token %d, want ErrHeld", got.Token)
		} else if !errors.Is(err, backend.ErrHeld) {
			t.Fatalf("an attempt whose refusal was lost, repeated: %v, want ErrHeld", err)
		}
	}
	t.holds(held)
	t.release(t.b, held)
	t.free()
}

func lostUndone(t *trial) {
	for range 3 {
		want := t.lease(long)
		t.loseReply(t.b, want)
		_, _ = t.b.Acquire(t.ctx, want)
		t.undo(t.b, want)
		t.free()
	}
}
