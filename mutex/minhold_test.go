package mutex_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// Case 55.
func TestMinHoldKeepsTheKeyAfterAnEarlyUnlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		o := &mutex.Options{MinHold: 5 * time.Second}
		m, begin := newMutex(t, n, o), time.Now()
		job := func() {
			if err := m.Do(t.Context(), func(context.Context) error { time.Sleep(ms); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		job()
		wantNow(t, begin, ms) // Unlock does not wait
		other := newMutex(t, n.inner, nil)
		time.Sleep(5*time.Second - 2*ms)
		wantErr(t, other.TryLock(t.Context()), mutex.ErrHeld)
		wantErr(t, m.TryLock(t.Context()), mutex.ErrHeld)
		time.Sleep(2 * ms)
		free(t, n.inner)
		if got := len(n.all("renew")); got != 0 {
			t.Errorf("%d renewals after Unlock", got)
		}
		// A job that takes longer is released at once.
		h := hold(t, m)
		time.Sleep(6 * time.Second)
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		free(t, n.inner)
	})
}

func TestMinHoldRenewsATermThatIsTooShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			l.TTL = 2 * time.Second
			return n.inner.Acquire(ctx, l)
		}
		h := hold(t, newMutex(t, n, &mutex.Options{MinHold: 10 * time.Second}))
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(10*time.Second - ms)
		wantErr(t, newMutex(t, n.inner, nil).TryLock(t.Context()), mutex.ErrHeld)
		n.change(func() { n.renew = func(context.Context, backend.Lease) error { return errLink } })
		time.Sleep(time.Second)
		_, err := newMutex(t, n, &mutex.Options{MinHold: 10 * time.Second}).Hold(t.Context())
		wantErr(t, err, errLink)
		synctest.Wait()
		free(t, n.inner)
	})
}

// slowNetwork answers an Acquire after six seconds.
func slowNetwork() *network {
	n := newNetwork()
	n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
		got, err := n.inner.Acquire(ctx, l)
		time.Sleep(6 * time.Second)
		return got, err
	}
	return n
}

// What a grant that came late has left is not enough either. MaxHold counts from
// the grant all the same.
func TestMinHoldRenewsATermThatCameLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := slowNetwork()
		h := hold(t, newMutex(t, n, &mutex.Options{TTL: 10 * time.Second, MinHold: 5 * time.Second, MaxHold: 12 * time.Second}))
		if got := len(n.all("renew")); got != 1 {
			t.Errorf("%d renewals before Lock returned, want 1", got)
		}
		if left := time.Until(h.Until()); left > 6*time.Second {
			t.Errorf("the hold lasts for another %v, want less than 6 s of MaxHold", left)
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(5*time.Second - ms)
		wantErr(t, newMutex(t, n.inner, nil).TryLock(t.Context()), mutex.ErrHeld)
		time.Sleep(time.Second)
		free(t, n.inner)
	})
}

// What the machine slept while the grant travelled is gone, too.
func TestMinHoldRenewsATermOfWhichTheMachineSleptAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var slept time.Duration
		n := newNetwork()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			got, err := n.inner.Acquire(ctx, l)
			slept += 6 * time.Second
			return got, err
		}
		m := newMutex(t, n, &mutex.Options{TTL: 10 * time.Second, MinHold: 5 * time.Second})
		m.SetSlept(func() time.Duration { return slept })
		h := hold(t, m)
		if got := len(n.all("renew")); got != 1 {
			t.Errorf("%d renewals before Lock returned, want 1", got)
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(6 * time.Second)
		free(t, n.inner)
	})
}

// A grant that was lost before anybody had it is no loss of a hold.
func TestMinHoldThatCannotBeKeptIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := slowNetwork()
		n.renew = func(context.Context, backend.Lease) error { return mutex.ErrLost }
		_, err := newMutex(t, n, &mutex.Options{TTL: 10 * time.Second, MinHold: 5 * time.Second}).Hold(t.Context())
		if err == nil || errors.Is(err, mutex.ErrLost) {
			t.Errorf("got %v, want an error that is no loss", err)
		}
		synctest.Wait()
		free(t, n.inner)
	})
}

func TestCloseLeavesWhatMinHoldKeeps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, unlocked := range []bool{true, false} {
			n := newNetwork()
			m := newMutex(t, n, &mutex.Options{MinHold: 5 * time.Second})
			h := hold(t, m)
			if unlocked {
				if err := h.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := m.Session().Close(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(10*time.Second - ms)
			wantErr(t, newMutex(t, n.inner, nil).TryLock(t.Context()), mutex.ErrHeld)
			time.Sleep(ms)
			free(t, n.inner)
			if got := len(n.all("release")); got != 0 {
				t.Errorf("%d releases; want none", got)
			}
		}
	})
}
