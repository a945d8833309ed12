package mutex_test

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// Cases 2 and 45: the server is silent, and grants late.
func TestCancelledLockIsBackPromptlyAndLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			n.inner.Acquire(ctx, l) // applied, and the reply never comes
			return silentAcquire(ctx, l)
		}
		m, begin := newMutex(t, n, nil), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		err := m.Lock(ctx)
		wantNow(t, begin, 100*ms)
		wantErr(t, err, context.DeadlineExceeded)
		if errors.Is(err, mutex.ErrHeld) {
			t.Errorf("%v; but nobody held it", err)
		}
		synctest.Wait()
		wantNow(t, begin, 100*ms)
		free(t, n.inner)
		if got := n.all("release"); len(got) != 1 || got[0].lease.Token != 0 ||
			got[0].lease.Owner != n.all("acquire")[0].lease.Owner {
			t.Errorf("released %+v; want what was asked for", got)
		}
	})
}

// Law 8, where the release fails at first.
func TestReleaseOfAnUnknownOutcomeIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			n.inner.Acquire(ctx, l)
			return backend.Lease{}, errLink
		}
		n.release = func(context.Context, backend.Lease) error { return errLink }
		m, begin := newMutex(t, n, nil), time.Now()
		err := m.Lock(t.Context())
		wantNow(t, begin, 0)
		wantErr(t, err, errLink)
		time.Sleep(time.Second)
		n.change(func() { n.release = nil })
		time.Sleep(time.Second)
		free(t, n.inner)
	})
}

func TestReleaseOfAnUnknownOutcomeEndsWithTheTerm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire, n.release = silentAcquire, silence
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m, begin := newMutex(t, n, nil), time.Now()
		wantErr(t, m.Lock(ctx), context.DeadlineExceeded)
		if err := m.Session().Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantNow(t, begin, 11*time.Second)
	})
}

// Case 3.
func TestAcquisitionThatTookLongerThanItsTermIsNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			got, err := n.inner.Acquire(ctx, l)
			time.Sleep(validity - ms)
			return got, err
		}
		m := newMutex(t, n, nil)
		err := m.Lock(t.Context())
		if err == nil || errors.Is(err, mutex.ErrHeld) || errors.Is(err, mutex.ErrLost) {
			t.Errorf("Lock = %v; want an unknown outcome", err)
		}
		var typed interface{ ErrorType() string }
		if !errors.As(err, &typed) || typed.ErrorType() != "late" {
			t.Errorf("Lock = %v; want an error that says late", err)
		}
		synctest.Wait()
		free(t, n.inner)
		wantErr(t, m.Unlock(t.Context()), mutex.ErrNotLocked)
	})
}

func TestValidityCountsFromBeforeTheRequest(t *testing.T) {
	for name, start := range map[string]time.Duration{"not told": -1, "told": 0, "later": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n, begin := newNetwork(), time.Now()
				n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
					time.Sleep(3 * time.Second)
					got, err := n.inner.Acquire(ctx, l)
					if got.Start = begin.Add(start); start < 0 {
						got.Start = time.Time{}
					}
					return got, err
				}
				h := hold(t, newMutex(t, n, nil))
				if want := begin.Add(validity); !h.Until().Equal(want) {
					t.Errorf("Until is %v; want %v", h.Until(), want)
				}
			})
		})
	}
}

// D3 of the soundness notes: a lease that was handed over is older and shorter.
func TestValidityIsThatOfTheTermReallyGranted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		time.Sleep(time.Minute)
		begin := time.Now()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			got, err := n.inner.Acquire(ctx, l)
			got.TTL, got.Start = 5*time.Second, l.Start.Add(-time.Second)
			return got, err
		}
		n.renew = func(context.Context, backend.Lease) error { return errLink }
		h := hold(t, newMutex(t, n, nil))
		if want := begin.Add(4*time.Second - 52*ms); !h.Until().Equal(want) {
			t.Errorf("Until is %v; want %v", h.Until(), want)
		}
		<-h.Lost()
		wantNow(t, begin, 4*time.Second-53*ms)
		first := n.all("renew")[0]
		if first.lease.TTL != 10*time.Second || first.at.After(begin.Add(time.Second)) {
			t.Errorf("renewed after %v for %v; want a third of the short term, for the full one",
				first.at.Sub(begin), first.lease.TTL)
		}
	})
}

// Case 11.
func TestCancelWhileAnotherHoldsShowsBoth(t *testing.T) {
	b := memory.New
	for name, wrap := range map[string]func(backend.Backend) backend.Backend{
		"waiter":  func(b backend.Backend) backend.Backend { return b },
		"polling": func(b backend.Backend) backend.Backend { return &network{inner: b} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := wrap(b(nil))
				other := hold(t, newMutex(t, b, nil))
				m, begin := newMutex(t, b, nil), time.Now()
				ctx, cancel := context.WithCancelCause(t.Context())
				why := errors.New("shutting down")
				time.AfterFunc(25*time.Second, func() { cancel(why) })
				wantErr(t, m.Lock(ctx), context.Canceled, mutex.ErrHeld, why)
				wantNow(t, begin, 25*time.Second)
				if err := other.Unlock(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				free(t, b)
			})
		})
	}
}

// What the nodes said is not lost when the context ends.
func TestCancelKeepsTheCausesOfTheNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			<-ctx.Done()
			return l, &backend.QuorumError{Op: "acquire", Key: "k", Need: 2, Nodes: []error{errLink, ctx.Err(), nil}}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, newMutex(t, n, nil).Lock(ctx), context.DeadlineExceeded, errLink)
		synctest.Wait()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			<-ctx.Done()
			return l, errLink
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, newMutex(t, n, nil).Lock(ctx), context.DeadlineExceeded, errLink)
	})
}

func TestLockWithADeadContextSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		m := newMutex(t, n, nil)
		wantErr(t, m.Lock(ctx), context.Canceled)
		wantErr(t, m.TryLock(ctx), context.Canceled)
		if got := n.all(""); len(got) != 0 {
			t.Errorf("sent %v", got)
		}
	})
}

// Case 14.
func TestOwnersAreRandomAndForOneAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		hold(t, newMutex(t, n.inner, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantErr(t, newMutex(t, n, nil).Lock(ctx), mutex.ErrHeld)
		seen := make(map[string]bool)
		for _, c := range n.all("acquire") {
			if raw, err := base64.RawURLEncoding.DecodeString(c.lease.Owner); err != nil || len(raw) != 20 {
				t.Errorf("owner of %d bytes, %v; want 20", len(raw), err)
			}
			if seen[c.lease.Owner] {
				t.Error("an owner was used twice")
			}
			seen[c.lease.Owner] = true
			if !c.lease.Start.Equal(c.at) || c.lease.Token != 0 || c.lease.TTL != 10*time.Second {
				t.Errorf("asked for %+v at %v", c.lease, c.at)
			}
		}
		if len(seen) < 10 {
			t.Errorf("%d attempts in a minute", len(seen))
		}
		synctest.Wait()
		if got := n.all("release"); len(got) != 0 {
			t.Errorf("released after a definite refusal: %v", got)
		}
	})
}

func TestTryLockMakesOneAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		hold(t, newMutex(t, n.inner, nil))
		m, begin := newMutex(t, n, nil), time.Now()
		err := m.TryLock(t.Context())
		wantErr(t, err, mutex.ErrHeld, backend.ErrHeld)
		wantNow(t, begin, 0)
		if got := len(n.all("")); got != 1 {
			t.Errorf("%d calls; want 1", got)
		}
	})
}

func dead(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
