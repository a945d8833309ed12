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

// Cases 36 and 40: these identities never change.
func TestErrorsOfUnlock(t *testing.T) {
	all := map[string]error{
		"held": mutex.ErrHeld, "lost": mutex.ErrLost, "not locked": mutex.ErrNotLocked,
		"closed": mutex.ErrClosed, "link": errLink, "canceled": context.Canceled, "deadline": context.DeadlineExceeded,
	}
	for _, c := range []struct {
		name   string
		before func(t *testing.T, n *network, m *mutex.Leased)
		want   string
		reason mutex.Reason
	}{
		{"released", func(*testing.T, *network, *mutex.Leased) {}, "", ""},
		{"expired", func(t *testing.T, n *network, m *mutex.Leased) {
			n.change(func() { n.renew = func(context.Context, backend.Lease) error { return errors.New("down") } })
			time.Sleep(time.Minute)
		}, "lost", mutex.Expired},
		{"stolen", func(t *testing.T, n *network, m *mutex.Leased) {
			steal(t, n.inner, n.all("acquire")[0].lease.Owner)
		}, "lost", mutex.Taken},
		{"max hold", func(*testing.T, *network, *mutex.Leased) { time.Sleep(2 * time.Hour) }, "lost", mutex.MaxHold},
		{"session closed", func(t *testing.T, n *network, m *mutex.Leased) { m.Session().Close(t.Context()) },
			"lost", mutex.Closed},
		{"node down", func(t *testing.T, n *network, m *mutex.Leased) {
			n.change(func() { n.release = func(context.Context, backend.Lease) error { return errLink } })
		}, "link", ""},
		{"not locked", func(t *testing.T, n *network, m *mutex.Leased) { m.Unlock(t.Context()) }, "not locked", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := newNetwork()
				m := newMutex(t, n, nil)
				if err := m.Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.before(t, n, m)
				err := m.Unlock(t.Context())
				if (err == nil) != (c.want == "") {
					t.Errorf("Unlock = %v", err)
				}
				for name, target := range all {
					if errors.Is(err, target) != (name == c.want) {
						t.Errorf("Unlock = %v; is it %q: %v", err, name, errors.Is(err, target))
					}
				}
				var lost *mutex.LostError
				if errors.As(err, &lost); (lost != nil) != (c.reason != "") || lost != nil && (lost.Reason != c.reason || lost.Key != "k") {
					t.Errorf("lost: %+v; want %q", lost, c.reason)
				}
			})
		})
	}
}

func TestManyUnlocksOfOneHoldSendOneRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.release = func(ctx context.Context, l backend.Lease) error {
			time.Sleep(100 * ms)
			return n.inner.Release(ctx, l)
		}
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
		n.release = func(ctx context.Context, l backend.Lease) error {
			time.Sleep(100 * ms)
			return n.inner.Release(ctx, l)
		}
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
