package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var waitChecks = []check{
	{"wait/free", 13, "Wait for a free key does not wait.", waiting, waitFree},
	{"wait/own", 4, "Wait by the holder, as after a lost reply, does not wait, and the hold keeps its token.", waiting, waitOwn},
	{"wait/release", 13, "A waiter gets the key when it is released, by whichever client it waits.", waiting, waitRelease},
	{"wait/expiry", 13, "A waiter gets the key when the holder's lease runs out.", waiting | expiry, waitExpiry},
	{"wait/grant", 13, "What a waiter gets is a hold as any other: its own, exclusive, renewable, with a larger token.", waiting, waitGrant},
	{"wait/floor", 5, "What a waiter gets is at least the floor it asked for.", waiting | fencing, waitFloor},
	{"wait/term", 2, "The term of what a waiter gets lasts to the end of its validity, and ends.", waiting | expiry, waitTerm},
	{"wait/cancel", 8, "A cancelled Wait returns at once with the context's error, and harms nobody.", waiting, waitCancel},
	{"wait/seen", 12, "Beside its error a Wait has the key only where another held it.", waiting, waitSeen},
	{"wait/cancel-race", 10, "If a grant races with the cancel of its Wait, the Release that is owed undoes it.", waiting, waitCancelRace},
}

func waitFree(t *trial) {
	for _, b := range []backend.Backend{t.b, t.peer} {
		t.promptly("Wait for a free key", func() { t.release(b, t.locked(b, long, 0)) })
	}
	t.free()
}

func waitOwn(t *trial) {
	want := t.lease(long)
	held := t.acquire(t.b, want)
	t.promptly("Wait by the holder", func() {
		got, err := t.waiter(t.b).Wait(t.ctx, want)
		switch {
		case err != nil:
			t.Errorf("Wait by the holder: %v, want nil", err)
		case got.TTL > 0 && got.Token != held.Token:
			t.Errorf("Wait by the holder: token %d, want %d as before", got.Token, held.Token)
		}
	})
	if again := t.acquire(t.b, want); again.Token != held.Token {
		t.Errorf("after a Wait by the holder: token %d, want %d as before", again.Token, held.Token)
	}
	t.holds(held)
	t.release(t.b, held)
	t.free()
}

func waitRelease(t *trial) {
	for _, b := range []backend.Backend{t.b, t.peer} {
		held := t.acquire(t.b, t.lease(long))
		w := t.queue(b, long, 0)
		t.release(t.b, held)
		t.release(b, t.served(w, patience))
		t.free()
	}
}

func waitExpiry(t *trial) {
	t.timed(func(term time.Duration) string {
		if _, ok := t.brief(t.b, t.lease(term)); !ok {
			return stalled
		}
		w := t.queue(t.peer, long, 0)
		t.release(t.peer, t.served(w, term+t.late+patience))
		return judged
	})
}

func waitGrant(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	w := t.queue(t.b, long, 0)
	t.release(t.b, held)
	got := t.served(w, patience)
	if !t.unfenced && got.Token <= held.Token {
		t.Errorf("token %d for a waiter, want more than the %d before", got.Token, held.Token)
	}
	if again := t.acquire(t.b, got); again.Token != got.Token {
		t.Errorf("the grant repeated: token %d, want %d as the first time", again.Token, got.Token)
	}
	t.holds(got)
	t.lostRelease("repeated after another got the key", t.b, held)
	t.holds(got)
	t.release(t.b, got)
	t.free()
}

func waitFloor(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	w := t.queue(t.b, long, held.Token+1000)
	t.release(t.b, held)
	got := t.served(w, patience) // lock has looked at its token
	t.release(t.b, got)
	t.rising(t.peer, t.lease(long), got.Token)
}

func waitTerm(t *trial) {
	t.timed(func(term time.Duration) string {
		held := t.acquire(t.b, t.lease(long))
		w := t.queue(t.b, term, 0)
		t.release(t.b, held)
		got := t.served(w, patience)
		if time.Until(got.Until()) < term/2 {
			return stalled
		}
		refusals := 0
		for t.refusedUntil(got.Until()) == judged {
			refusals++
			time.Sleep(term / 20)
		}
		time.Sleep(t.late)
		t.free()
		if refusals < 3 {
			return stalled
		}
		return judged
	})
}

// Case 45.
func waitCancel(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	for _, b := range []backend.Backend{t.b, t.peer} {
		t.promptly("cancelling a Wait", func() { t.cancelled(b) })
	}
	t.holds(held)
	t.release(t.b, held)
	t.free()
}

// cancelled waits for the held key in vain. Hints are followed by another Wait.
func (t *trial) cancelled(b backend.Backend) {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := t.lock(ctx, b, long, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Wait: %v, want context.Canceled", err)
	}
}

func waitSeen(t *trial) {
	for because, ctx := range t.dead() {
		want := t.lease(long)
		got, err := t.waiter(t.b).Wait(ctx, want)
		switch {
		case err == nil:
			t.Errorf("a Wait whose context has ended: nil, want %v", because)
		case got.Key != "":
			t.Errorf("a Wait for a free key, beside %v: the key %q, want none, as nobody held it", err, got.Key)
		}
		t.undo(t.b, want)
		t.free()
	}
}

func waitCancelRace(t *trial) {
	for range 30 {
		held := t.acquire(t.b, t.lease(long))
		want := t.lease(long)
		ctx, cancel := context.WithCancel(t.ctx)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = t.waiter(t.peer).Wait(ctx, want) })
		wg.Go(func() { time.Sleep(rand.N(3 * time.Millisecond)); cancel() })
		time.Sleep(rand.N(3 * time.Millisecond))
		t.release(t.b, held)
		wg.Wait()
		t.undo(t.peer, want)
		t.free()
	}
}
