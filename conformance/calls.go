package conformance

import (
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// unknown says that err leaves the outcome open, so that the call is repeated.
func (t *trial) unknown(err error) bool {
	var invalid *backend.InvalidError
	return err != nil && t.ctx.Err() == nil && !errors.As(err, &invalid) &&
		!errors.Is(err, backend.ErrHeld) && !errors.Is(err, backend.ErrLost)
}

// persist repeats a call whose outcome is unknown: on a busy machine a server
// may miss a time-out, which breaks no rule.
func (t *trial) persist(call func() error) error {
	err := call()
	for range 3 {
		if !t.unknown(err) {
			break
		}
		t.Logf("repeated after %v", err)
		time.Sleep(10 * time.Millisecond)
		err = call()
	}
	return err
}

func (t *trial) tryAcquire(b backend.Backend, want backend.Lease) (got backend.Lease, err error) {
	err = t.persist(func() error {
		got, err = b.Acquire(t.ctx, want)
		return err
	})
	if !errors.Is(err, backend.ErrHeld) {
		t.note(want)
	}
	return got, err
}

// acquire takes a key that is free, or the owner's.
func (t *trial) acquire(b backend.Backend, want backend.Lease) backend.Lease {
	t.Helper()
	got, err := t.tryAcquire(b, want)
	if err != nil {
		t.Fatalf("Acquire of a key that nobody else holds: %v, want a grant", err)
	}
	return got
}

// refused asks for a key that another holds.
func (t *trial) refused(b backend.Backend) {
	t.Helper()
	switch got, err := t.tryAcquire(b, t.lease(long)); {
	case err == nil:
		t.Fatalf("Acquire of a key that another holds: granted with token %d, want ErrHeld", got.Token)
	case !errors.Is(err, backend.ErrHeld):
		t.Fatalf("Acquire of a key that another holds: %v, want ErrHeld", err)
	}
}

func (t *trial) renew(b backend.Backend, held backend.Lease) {
	t.Helper()
	held.Start = time.Now()
	if err := t.persist(func() error { return b.Renew(t.ctx, held) }); err != nil {
		t.Fatalf("Renew by the holder: %v, want nil", err)
	}
}

// tryRelease repeats a Release whose outcome is unknown. The repeat may find
// another's grant, where the first has freed the key.
func (t *trial) tryRelease(b backend.Backend, held backend.Lease) error {
	err := b.Release(t.ctx, held)
	if !t.unknown(err) {
		return err
	}
	t.Logf("repeated after %v", err)
	err = t.persist(func() error { return b.Release(t.ctx, held) })
	if errors.Is(err, backend.ErrLost) {
		return nil
	}
	return err
}

func (t *trial) release(b backend.Backend, held backend.Lease) {
	t.Helper()
	if err := t.tryRelease(b, held); err != nil {
		t.Fatalf("Release by the holder: %v, want nil", err)
	}
}

// lost expects ErrLost of a call.
func (t *trial) lost(what string, call func() error) {
	t.Helper()
	if err := t.persist(call); !errors.Is(err, backend.ErrLost) {
		t.Errorf("%s: %v, want ErrLost", what, err)
	}
}

// lostRelease expects ErrLost of a Release. Without a token, nil will do.
func (t *trial) lostRelease(when string, b backend.Backend, held backend.Lease) {
	t.Helper()
	err := t.persist(func() error { return b.Release(t.ctx, held) })
	if !errors.Is(err, backend.ErrLost) && !(err == nil && held.Token == 0) {
		t.Errorf("Release %s: %v, want ErrLost", when, err)
	}
}

// undo gives up an attempt of whose outcome the caller was told nothing.
func (t *trial) undo(b backend.Backend, want backend.Lease) {
	t.Helper()
	t.note(want)
	want.Token = 0
	err := t.persist(func() error { return b.Release(t.ctx, want) })
	if t.ctx.Err() != nil {
		return // the case is over: tidy does it
	}
	if err != nil {
		t.Errorf("Release by one who was told of no grant: %v, want nil", err)
	}
}

// holds checks that held is still the holder's, seen from both sides.
func (t *trial) holds(held backend.Lease) {
	t.Helper()
	t.refused(t.peer)
	t.renew(t.b, held)
}

// free checks that the key can be had. Clean-up in the background may take a
// moment, so that a refusal is final only when it lasts.
func (t *trial) free() {
	t.Helper()
	if _, err := t.soonFree(); err != nil {
		t.Fatalf("the key should be free, but for %v: %v", soon, err)
	}
}

// soonFree takes the key as soon as it can be had, and releases it.
func (t *trial) soonFree() (backend.Token, error) {
	t.Helper()
	for deadline := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		began := time.Now()
		got, err := t.tryAcquire(t.peer, t.lease(long))
		if err == nil {
			t.release(t.peer, got)
			return got.Token, nil
		}
		if !errors.Is(err, backend.ErrHeld) || began.After(deadline) {
			return 0, err
		}
	}
}
