package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// ops is what was called since the last time, one letter each.
func (n *network) ops() (all string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.calls {
		all += c.op[:1]
	}
	n.calls = nil
	return all
}

func TestWhoHadToWaitBeginsWithThat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := &waiting{network: newNetwork()}
		w.wait = w.inner.(backend.Waiter).Wait
		m, other := newMutex(t, w, nil), newMutex(t, w.inner, nil)
		step := func(what, want string, held time.Duration) {
			t.Helper()
			if held > 0 {
				h := hold(t, other)
				time.AfterFunc(held, func() { h.Unlock(t.Context()) })
			}
			begin := time.Now()
			h := hold(t, m)
			wantNow(t, begin, held)
			if err := h.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			if got := w.ops(); got != want {
				t.Errorf("%s: calls are %q; want %q", what, got, want)
			}
		}
		step("free", "ar", 0)
		step("held, for the first time", "awr", 5*ms)
		step("held again", "wr", 5*ms)
		step("free by now", "wr", 0)
		step("free as before", "ar", 0)
		step("held once more", "awr", 5*ms)
	})
}

func TestTryLockNeverWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := &waiting{network: newNetwork()}
		w.wait = w.inner.(backend.Waiter).Wait
		m, other := newMutex(t, w, nil), newMutex(t, w.inner, nil)
		h := hold(t, other)
		time.AfterFunc(5*ms, func() { h.Unlock(t.Context()) })
		if err := m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.ops()
		hold(t, other)
		begin := time.Now()
		wantErr(t, m.TryLock(t.Context()), mutex.ErrHeld)
		wantNow(t, begin, 0)
		if got := w.ops(); got != "a" {
			t.Errorf("calls are %q; want one attempt", got)
		}
	})
}

// A Wait that fails says nothing of whether the lock can be had.
func TestWaitThatComesFirstAndFailsIsFollowedByAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, h := newWaiting(t)
		w.wait = w.inner.(backend.Waiter).Wait
		time.AfterFunc(5*ms, func() { h.Unlock(t.Context()) })
		m := newMutex(t, w, nil)
		if err := hold(t, m).Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.ops()
		w.wait = func(context.Context, backend.Lease) (backend.Lease, error) { return backend.Lease{}, errLink }
		if err := hold(t, m).Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if got := w.ops(); got != "war" {
			t.Errorf("calls are %q; want an attempt after the wait", got)
		}
	})
}
