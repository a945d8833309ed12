package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var cancelChecks = []check{
	{"cancel/dead-context", 8, "Every verb returns at once when its context has ended, with an error that wraps the context's.", 0, deadContext},
	{"cancel/undone", 8, "Whatever an Acquire did whose context had ended, Release undoes it.", 0, cancelUndone},
	{"cancel/renew", 8, "A Renew whose context had ended loses nothing.", 0, cancelRenew},
	{"cancel/release", 9, "A Release whose context had ended can be repeated under another.", 0, cancelRelease},
	{"cancel/race", 10, "An Acquire that is cancelled on its way leaves nothing once Release was called, at once or later.", 0, cancelRace},
}

// dead returns contexts that have ended, with their errors.
func (t *trial) dead() map[error]context.Context {
	cancelled, cancel := context.WithCancel(t.ctx)
	cancel()
	late, cancel := context.WithDeadline(t.ctx, time.Unix(0, 0))
	t.Cleanup(cancel)
	return map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: late}
}

func deadContext(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	for want, ctx := range t.dead() {
		for verb, call := range t.verbs(t.b) {
			t.promptly(verb+" with a context that has ended", func() {
				other := t.lease(long)
				if err := call(ctx, other); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", verb, err, want)
				}
				t.undo(t.b, other)
			})
		}
	}
	t.holds(held)
	t.release(t.b, held)
	t.free()
}

func cancelUndone(t *trial) {
	for want, ctx := range t.dead() {
		for verb, call := range t.verbs(t.b) {
			if verb != "Acquire" && verb != "Wait" {
				continue
			}
			other := t.lease(long)
			if err := call(ctx, other); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", verb, err, want)
			}
			t.undo(t.b, other)
			t.free()
		}
	}
}

func cancelRenew(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	for want, ctx := range t.dead() {
		if err := t.b.Renew(ctx, held); !errors.Is(err, want) || errors.Is(err, backend.ErrLost) {
			t.Errorf("Renew: %v, want %v and not ErrLost", err, want)
		}
		t.holds(held)
	}
	t.release(t.b, held)
}

// Case 32.
func cancelRelease(t *trial) {
	for want, ctx := range t.dead() {
		held := t.acquire(t.b, t.lease(long))
		if err := t.b.Release(ctx, held); !errors.Is(err, want) {
			t.Errorf("Release: %v, want %v", err, want)
		}
		t.release(t.b, held)
		t.free()
	}
}

// Cases 2 and 45, as far as they show without a slow server.
func cancelRace(t *trial) {
	for range 30 {
		want := t.lease(long)
		ctx, cancel := context.WithTimeout(t.ctx, rand.N(2*time.Millisecond))
		_, err := t.b.Acquire(ctx, want)
		cancel()
		if errors.Is(err, backend.ErrHeld) {
			t.Fatalf("Acquire of a free key: %v, want a grant or an unknown outcome", err)
		}
		t.undo(t.b, want)
		t.free()
	}
	// Nothing is still on its way.
	time.Sleep(50 * time.Millisecond)
	t.free()
}
