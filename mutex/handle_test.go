package mutex_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// Unlock of a Leased is about Lock, and never ends a handle of somebody else.
func TestUnlockDoesNotEndAHandle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMutex(t, memory.New(nil), nil)
		h := hold(t, m)
		if m.Current() != nil {
			t.Error("Current is a handle of somebody else")
		}
		wantErr(t, m.Unlock(t.Context()), mutex.ErrNotLocked)
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// By the handle, and then again while the next one has passed the gate and asks.
func TestUnlockOfWhatItsHandleUnlockedIsNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, nil)
		if err := m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.acquire = silentAcquire
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { wantErr(t, m.Lock(ctx), context.DeadlineExceeded) })
		synctest.Wait()
		if err := m.Current().Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if m.Current() != nil {
			t.Error("still locked")
		}
		wantErr(t, m.Unlock(t.Context()), mutex.ErrNotLocked)
		wg.Wait()
	})
}
