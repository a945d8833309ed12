package mutex_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/mutex"
)

// validity of the default TTL.
const validity = 10*time.Second - 102*ms

// Cases 19 and 29.
func TestHoldIsLostInTimeThoughNoServerAnswers(t *testing.T) {
	for name, renew := range map[string]func(context.Context, backend.Lease) error{
		"silent":           silence,
		"refusing":         func(context.Context, backend.Lease) error { return errLink },
		"ignoring its ctx": func(context.Context, backend.Lease) error { time.Sleep(15 * time.Second); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := newNetwork()
				n.renew = renew
				m, begin := newMutex(t, n, nil), time.Now()
				h := hold(t, m)
				ctx, cancel := h.Context(t.Context())
				defer cancel()
				if got, want := h.Until(), begin.Add(validity); !got.Equal(want) {
					t.Errorf("Until is %v; want %v", got, want)
				}
				<-h.Lost()
				wantNow(t, begin, validity-ms)
				<-ctx.Done()
				wantNow(t, begin, validity-ms)
				if got := reason(h); got != mutex.Expired {
					t.Errorf("the reason is %q; want %q", got, mutex.Expired)
				}
				var cause *mutex.LostError
				if !errors.As(context.Cause(ctx), &cause) || !errors.Is(cause, mutex.ErrLost) {
					t.Errorf("the cause is %v; want a *LostError", context.Cause(ctx))
				}
				if name != "ignoring its ctx" && cause.Err == nil {
					t.Error("the last failure is not told")
				}
				if errors.Is(cause, context.DeadlineExceeded) {
					t.Errorf("the cause shows a deadline of ours: %v", cause)
				}
				// Case 39.
				wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
				wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
				wantNow(t, begin, validity-ms)

				time.Sleep(2 * time.Minute)
				if got := n.all("release"); len(got) != 1 {
					t.Errorf("released %d times, in the background; want 1", len(got))
				}
			})
		})
	}
}

// Case 27.
func TestCancelAfterLockChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMutex(t, newNetwork(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		if err := m.Lock(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Minute)
		if err := m.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestHoldEndsEarlierIfTheMachineSlept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var slept time.Duration
		n := newNetwork()
		m := newMutex(t, n, &mutex.Options{RenewEvery: -1})
		m.SetSlept(func() time.Duration { return slept })
		slept = time.Hour // before the lock: of no importance
		h, begin := hold(t, m), time.Now()
		lost := h.Lost()
		slept += 4 * time.Second
		if got, want := h.Until(), begin.Add(validity-4*time.Second); !got.Equal(want) {
			t.Errorf("Until is %v; want %v", got, want)
		}
		time.Sleep(5 * time.Second)
		if h.Err() != nil {
			t.Error(h.Err())
		}
		slept += time.Second
		wantErr(t, h.Err(), mutex.ErrLost)
		if !isClosed(lost) {
			t.Error("Lost is still open")
		}
		if got, want := h.Until(), begin.Add(validity-5*time.Second); !got.Equal(want) {
			t.Errorf("noticed late: Until is %v; want %v", got, want)
		}
		wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
	})
}

// The machine sleeps while the request travels.
func TestGrantIsRefusedIfTheMachineSleptTooLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var slept time.Duration
		n := newNetwork()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			slept += 10 * time.Second
			return n.inner.Acquire(ctx, l)
		}
		m := newMutex(t, n, nil)
		m.SetSlept(func() time.Duration { return slept })
		if err := m.Lock(t.Context()); err == nil {
			t.Error("locked; want an error")
		}
		synctest.Wait()
		free(t, n.inner)
	})
}

// The machine sleeps while a renewal travels.
func TestRenewalDoesNotCoverASleepOnItsWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var slept time.Duration
		n := newNetwork()
		n.renew = func(ctx context.Context, l backend.Lease) error {
			slept += 4 * time.Second
			return n.inner.Renew(ctx, l)
		}
		m := newMutex(t, n, nil)
		m.SetSlept(func() time.Duration { return slept })
		h := hold(t, m)
		time.Sleep(3500 * ms) // the next renewal is due at 5.9 s or later
		asked := n.all("renew")
		if want := asked[0].at.Add(validity - 4*time.Second); len(asked) != 1 || !h.Until().Equal(want) {
			t.Errorf("Until is %v after %d renewals; want %v", h.Until(), len(asked), want)
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestLeaseIsPassedOnWithItsSleeps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var slept time.Duration
		n := newNetwork()
		m := newMutex(t, n, &mutex.Options{RenewEvery: -1})
		m.SetSlept(func() time.Duration { return slept })
		first, begin := hold(t, m), time.Now()
		var second *mutex.Hold
		go func() { second, _ = m.Hold(t.Context()) }()
		synctest.Wait()
		slept += 4 * time.Second
		if err := first.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if second == nil || len(n.all("release")) != 0 {
			t.Fatal("the lease was not passed on")
		}
		if got, want := second.Until(), begin.Add(validity-4*time.Second); !got.Equal(want) {
			t.Errorf("Until is %v; want %v", got, want)
		}
		if err := second.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRealClocksDoNotMoveApart(t *testing.T) {
	first := mutex.Suspended()
	for range 1000 {
		if d := mutex.Suspended() - first; d > ms || d < -ms {
			t.Fatalf("slept %v, awake", d)
		}
	}
}

func TestContextCarriesTheTokenAndEndsWithUnlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMutex(t, memory.New(nil), nil)
		h := hold(t, m)
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		if got, ok := fencing.FromContext(ctx); !ok || got != h.Token() || got == 0 {
			t.Errorf("the token is %v, %v; want %v", got, ok, h.Token())
		}
		early, cancelEarly := h.Context(t.Context())
		cancelEarly()
		if early.Err() == nil || ctx.Err() != nil || h.Err() != nil {
			t.Errorf("after cancel of one context: %v, %v, %v", early.Err(), ctx.Err(), h.Err())
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ctx.Err() == nil || context.Cause(ctx) != context.Canceled {
			t.Errorf("the context ended with %v, %v; want Canceled", ctx.Err(), context.Cause(ctx))
		}
		late, cancelLate := h.Context(t.Context())
		defer cancelLate()
		if late.Err() == nil {
			t.Error("a context of a hold that is over goes on")
		}
		if isClosed(h.Lost()) || h.Err() != nil {
			t.Errorf("unlocked in time, but lost: %v", h.Err())
		}
	})
}

// Case 30. The gate stays shut until the holder of the lost lease has unlocked.
func TestMutexCanBeLockedAgainAfterALossAndUnlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New(nil)
		m := newMutex(t, b, &mutex.Options{RenewEvery: -1})
		if err := m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := m.Current()
		<-first.Lost()
		time.Sleep(time.Second)
		free(t, b)
		wantErr(t, m.TryLock(t.Context()), mutex.ErrHeld)
		wantErr(t, m.Unlock(t.Context()), mutex.ErrLost)
		wantErr(t, m.Unlock(t.Context()), mutex.ErrNotLocked)
		if err := m.TryLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if second := m.Current(); second == first || second.Err() != nil || second.Token() <= first.Token() {
			t.Errorf("second hold: %v, token %v after %v", second.Err(), second.Token(), first.Token())
		}
		if err := m.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
