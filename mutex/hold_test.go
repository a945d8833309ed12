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

func TestRenewalsKeepAHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		h, begin := hold(t, newMutex(t, n, nil)), time.Now()
		time.Sleep(100 * time.Second)
		if err := h.Err(); err != nil {
			t.Fatal(err)
		}
		last, gaps := begin, make(map[time.Duration]bool)
		for _, c := range n.all("renew") {
			if gap := c.at.Sub(last); gap > validity/3 || gap < validity*3/10 {
				t.Errorf("renewed after %v; want a third of %v, less a tenth at most", gap, validity)
			}
			if !c.lease.Start.Equal(c.at) || c.lease.Token != h.Token() || c.lease.TTL != 10*time.Second {
				t.Errorf("renewed with %+v at %v", c.lease, c.at)
			}
			gaps[c.at.Sub(last)] = true
			last = c.at
		}
		if len(gaps) < 10 {
			t.Errorf("waited %v: those who began together stay together", gaps)
		}
		if got, want := h.Until(), last.Add(validity); !got.Equal(want) {
			t.Errorf("Until is %v; want %v", got, want)
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		releases := n.all("release")
		if len(releases) != 1 || !releases[0].lease.Start.Equal(last) {
			t.Errorf("released with %+v; want once, with Start %v", releases, last)
		}
	})
}

// Cases 21 and 23.
func TestFailedRenewalsDoNotEndAValidHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.renew = func(context.Context, backend.Lease) error { return errLink }
		h := hold(t, newMutex(t, n, nil))
		time.Sleep(9 * time.Second)
		if tries := len(n.all("renew")); h.Err() != nil || tries < 3 || tries > 100 {
			t.Errorf("after %d tries: %v; want some tries and no loss", tries, h.Err())
		}
		n.change(func() { n.renew = nil })
		time.Sleep(time.Minute)
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(n.all("release")); n != 1 {
			t.Errorf("%d releases; want 1", n)
		}
	})
}

// Case 22.
func TestRenewalWhoseReplyIsLostDoesNotEndTheHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		lose := true
		n.renew = func(ctx context.Context, l backend.Lease) error {
			err := n.inner.Renew(ctx, l)
			if lose = !lose; !lose {
				return errLink
			}
			return err
		}
		h := hold(t, newMutex(t, n, nil))
		time.Sleep(time.Minute)
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Cases 24 and 25.
func TestStolenLeaseIsLostAtOnceAndStaysStolen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		h := hold(t, newMutex(t, n, nil))
		steal(t, n.inner, n.all("acquire")[0].lease.Owner)
		<-h.Lost()
		if got := len(n.all("renew")); got != 1 || reason(h) != mutex.Taken {
			t.Errorf("lost after %d renewals: %v; want one and %q", got, h.Err(), mutex.Taken)
		}
		wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
		synctest.Wait()
		if got := n.all("release"); len(got) != 0 {
			t.Errorf("released what is another's: %v", got)
		}
	})
}

// Case 26.
func TestMaxHoldBoundsAHoldThatIsRenewed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		h, begin := hold(t, newMutex(t, n, &mutex.Options{MaxHold: 25 * time.Second})), time.Now()
		<-h.Lost()
		wantNow(t, begin, 25*time.Second-ms)
		if got := reason(h); got != mutex.MaxHold {
			t.Errorf("the reason is %q; want %q", got, mutex.MaxHold)
		}
		renewals := len(n.all("renew"))
		time.Sleep(time.Minute)
		if got := len(n.all("renew")); got != renewals {
			t.Errorf("%d renewals after the end", got-renewals)
		}
		wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
	})
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

// Case 28.
func TestRenewalHasAContextOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		var h *mutex.Hold
		tries := 0
		n.renew = func(ctx context.Context, l backend.Lease) error {
			end, ok := ctx.Deadline()
			if left := h.Until().Sub(time.Now()); !ok || time.Until(end) > left/2 {
				t.Errorf("ends in %v with %v of validity left; want half at most", time.Until(end), left)
			}
			tries++
			return silence(ctx, l)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h, _ = newMutex(t, n, nil).Hold(ctx)
		<-h.Lost()
		if tries < 3 {
			t.Errorf("%d tries; want some", tries)
		}
	})
}

func TestRenewEvery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		h := hold(t, newMutex(t, n, &mutex.Options{RenewEvery: time.Second}))
		time.Sleep(10 * time.Second)
		if got := len(n.all("renew")); got < 10 || got > 12 || h.Err() != nil {
			t.Errorf("%d renewals in 10 s: %v; want about 10", got, h.Err())
		}
		h.Unlock(t.Context())

		begin := time.Now()
		h = hold(t, newMutex(t, n, &mutex.Options{RenewEvery: -1}))
		renewals := len(n.all("renew"))
		<-h.Lost()
		wantNow(t, begin, validity-ms)
		if got := len(n.all("renew")); got != renewals {
			t.Errorf("renewed %d times; want never", got-renewals)
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
