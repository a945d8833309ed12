package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// patience is how long a case waits for a wake-up: the bound within which Wait
// returns is the backend's to choose, and must be less.
const patience = 10 * time.Second

// lock takes the key as a patient caller does: Wait and Acquire in turns, a new
// owner after each refusal, the place in line kept.
func (t *trial) lock(ctx context.Context, b backend.Backend, ttl time.Duration, floor backend.Token) (backend.Lease, error) {
	var ticket string
	for {
		want := t.lease(ttl)
		want.Ticket, want.Token = ticket, floor
		got, err := t.waiter(b).Wait(ctx, want)
		granted := err == nil && got.TTL > 0
		if err == nil && !granted {
			ticket, want.Ticket, want.Start = got.Ticket, got.Ticket, time.Now()
			got, err = b.Acquire(ctx, want)
			granted = err == nil
		}
		if granted {
			t.note(got)
			t.fits(want, got)
			return got, nil
		}
		// After a refusal nothing is owed but, when giving up, the place in line.
		refused := errors.Is(err, backend.ErrHeld)
		if !refused || ctx.Err() != nil {
			t.undo(b, want)
		}
		switch {
		case ctx.Err() != nil && refused:
			return backend.Lease{}, ctx.Err()
		case ctx.Err() != nil:
			return backend.Lease{}, err
		}
		// Hints may come for no reason at all.
		time.Sleep(time.Millisecond + rand.N(4*time.Millisecond))
	}
}

// fits checks a grant against what was asked.
func (t *trial) fits(want, got backend.Lease) {
	t.Helper()
	now := time.Now()
	switch {
	case got.Key != want.Key || got.Owner != want.Owner:
		t.Errorf("granted key %q and owner: want %q and the owner that asked", got.Key, want.Key)
	case got.TTL > want.TTL:
		t.Errorf("granted a term of %v, want at most the %v asked for", got.TTL, want.TTL)
	case got.Start.Before(want.Start) || got.Start.After(now):
		t.Errorf("granted from %v, want from between %v and %v", got.Start, want.Start, now)
	case !t.unfenced && got.Token < max(want.Token, 1):
		t.Errorf("granted token %d, want at least %d", got.Token, max(want.Token, 1))
	}
}

// locked is lock for those who must get the key.
func (t *trial) locked(b backend.Backend, ttl time.Duration, floor backend.Token) backend.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	got, err := t.lock(ctx, b, ttl, floor)
	if err != nil {
		t.Fatalf("a waiter for a key that is free did not get it within %v: %v", patience, err)
	}
	return got
}

// queue starts a waiter, and gives it time to be one. It sends the lease it
// gets, or closes the channel without.
func (t *trial) queue(b backend.Backend, ttl time.Duration, floor backend.Token) <-chan backend.Lease {
	got := make(chan backend.Lease, 1)
	t.waiters.Go(func() {
		defer close(got)
		if l, err := t.lock(t.ctx, b, ttl, floor); err == nil {
			got <- l
		}
	})
	time.Sleep(50 * time.Millisecond)
	return got
}

// served waits for one that queues.
func (t *trial) served(got <-chan backend.Lease, within time.Duration) backend.Lease {
	t.Helper()
	select {
	case l, ok := <-got:
		if !ok {
			t.Fatalf("a waiter gave up without the key")
		}
		return l
	case <-time.After(within):
		t.Fatalf("a waiter for a key that is free did not get it within %v", within)
	}
	return backend.Lease{}
}
