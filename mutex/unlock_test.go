package mutex_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// Case 20.
func TestUnlockWaitsForARenewalOnItsWayAndNothingFollows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		var returned time.Time
		n.renew = func(ctx context.Context, l backend.Lease) error {
			<-ctx.Done() // the reply is held back
			time.Sleep(50 * ms)
			n.inner.Renew(t.Context(), l)
			returned = time.Now()
			return ctx.Err()
		}
		h, begin := hold(t, newMutex(t, n, nil)), time.Now()
		time.Sleep(4 * time.Second)
		if err := h.Unlock(dead(t)); err != nil {
			t.Error(err)
		}
		wantNow(t, begin, 4*time.Second+50*ms)
		got := n.all("")
		if last := got[len(got)-1]; last.op != "release" || last.at.Before(returned) {
			t.Errorf("%s at %v; want the release, after %v", last.op, last.at, returned)
		}
		free(t, n.inner)
		time.Sleep(time.Minute)
		if after := n.all(""); len(after) != len(got) {
			t.Errorf("sent after Unlock: %v", after[len(got):])
		}
	})
}

// A renewal that succeeds after Unlock began does not revive the hold.
func TestStaleRenewalChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.renew = func(ctx context.Context, l backend.Lease) error {
			<-ctx.Done()
			return n.inner.Renew(t.Context(), l)
		}
		h := hold(t, newMutex(t, n, nil))
		time.Sleep(4 * time.Second)
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if h.Until().After(time.Now()) {
			t.Error("still valid after Unlock")
		}
		if got := n.all("release"); !got[0].lease.Start.Equal(n.all("acquire")[0].at) {
			t.Errorf("released with Start %v; want that of the last renewal that counted", got[0].lease.Start)
		}
	})
}

// Case 32.
func TestUnlockWorksWithADeadContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.release = func(ctx context.Context, l backend.Lease) error {
			select {
			case <-time.After(900 * ms):
				return n.inner.Release(ctx, l)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		m := newMutex(t, n, nil)
		if err := m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Unlock(dead(t)); err != nil {
			t.Error(err)
		}
		free(t, n.inner)
	})
}

func TestUnlockWaitsUntilTheLaterOfContextAndASecond(t *testing.T) {
	for _, c := range []struct {
		name       string
		held, ctx  time.Duration // how long it was held; when ctx ends
		want       time.Duration
		isDeadline bool
	}{
		{"dead context", 0, 0, time.Second, true},
		{"short context", 0, 300 * ms, time.Second, true},
		{"long context", 0, 4 * time.Second, 4 * time.Second, true},
		{"never past validity", 0, time.Minute, validity, false},
		{"nor with a dead context", validity - 500*ms, 0, 500 * ms, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := newNetwork()
				n.release = silence
				h := hold(t, newMutex(t, n, &mutex.Options{RenewEvery: -1}))
				time.Sleep(c.held)
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), c.ctx)
				defer cancel()
				err := h.Unlock(ctx)
				wantNow(t, begin, c.want)
				if err == nil || errors.Is(err, mutex.ErrLost) || errors.Is(err, context.DeadlineExceeded) != c.isDeadline {
					t.Errorf("Unlock = %v; want an unknown outcome, which is the end of ctx: %v", err, c.isDeadline)
				}
			})
		})
	}
}

// Case 33.
func TestRepeatedUnlockDoesNotTouchTheNextHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.release = func(ctx context.Context, l backend.Lease) error {
			n.inner.Release(ctx, l)
			return errLink // the reply is lost
		}
		m := newMutex(t, n, nil)
		old := hold(t, m)
		wantErr(t, old.Unlock(t.Context()), errLink)
		n.change(func() { n.release = nil })
		next := hold(t, m)
		// It can't be told from a theft any more: not nil.
		wantErr(t, old.Unlock(t.Context()), mutex.ErrLost)
		wantErr(t, newMutex(t, n.inner, nil).TryLock(t.Context()), mutex.ErrHeld)
		if err := next.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Case 34, and 35.
func TestFailedUnlockCanBeRepeated(t *testing.T) {
	for _, applied := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			n := newNetwork()
			n.release = func(ctx context.Context, l backend.Lease) error {
				if applied {
					n.inner.Release(ctx, l)
				}
				return errLink
			}
			m := newMutex(t, n, nil)
			if err := m.Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				wantErr(t, m.Unlock(t.Context()), errLink)
			}
			n.change(func() { n.release = nil })
			if err := m.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			wantErr(t, m.Unlock(t.Context()), mutex.ErrNotLocked)
			free(t, n.inner)
		})
	}
}

// Case 38.
func TestStaleHandleDoesNotReleaseTheNewHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New(nil)
		stale := hold(t, newMutex(t, b, &mutex.Options{RenewEvery: -1}))
		time.Sleep(20 * time.Second)
		next := hold(t, newMutex(t, b, nil))
		wantErr(t, stale.Unlock(t.Context()), mutex.ErrLost)
		synctest.Wait()
		wantErr(t, newMutex(t, b, nil).TryLock(t.Context()), mutex.ErrHeld)
		if err := next.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestManyUnlocksOfOneHoldSendOneRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.slowRelease(100 * ms)
		h := hold(t, newMutex(t, n, nil))
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				begin := time.Now()
				if err := h.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				wantNow(t, begin, 100*ms)
			})
		}
		wg.Wait()
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if got := len(n.all("release")); got != 1 {
			t.Errorf("%d releases; want 1", got)
		}
	})
}

func TestOfManyUnlocksOfALockOneSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.slowRelease(100 * ms)
		m := newMutex(t, n, nil)
		if err := m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		results := make(chan error, 50)
		for range 50 {
			wg.Go(func() { results <- m.Unlock(t.Context()) })
		}
		wg.Wait()
		close(results)
		good := 0
		for err := range results {
			if err == nil {
				good++
			} else {
				wantErr(t, err, mutex.ErrNotLocked)
			}
		}
		if good != 1 {
			t.Errorf("%d succeeded; want 1", good)
		}
	})
}

// The first one's outcome stayed unknown: there is an answer even so.
func TestUnlockRepeatedAfterTheTermIsDefinite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.release = silence
		h := hold(t, newMutex(t, n, nil))
		wantErr(t, h.Unlock(dead(t)), context.Canceled)
		n.change(func() { n.release = nil })
		time.Sleep(time.Minute)
		wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
	})
}
