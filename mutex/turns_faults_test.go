package mutex_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

func TestLeaseThatNobodyTakesIsReleased(t *testing.T) {
	for seed := range 50 {
		bubble(t, func(t *testing.T) {
			n := newNetwork()
			m := newMutex(t, n, nil)
			h := hold(t, m)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				if h, err := m.Hold(ctx); err == nil {
					h.Unlock(t.Context())
				}
			})
			synctest.Wait()
			if seed%2 == 0 {
				go cancel()
				h.Unlock(t.Context())
			} else {
				go h.Unlock(t.Context())
				cancel()
			}
			wg.Wait()
			synctest.Wait()
			other := newMutex(t, n, nil)
			if err := other.TryLock(t.Context()); err != nil {
				t.Fatal(err)
			}
			other.Unlock(t.Context())
			if got := m.Session().Gates(); got != 0 {
				t.Errorf("%d gates are left", got)
			}
			cancel()
		})
	}
}

func TestRaiseAfterALossGivesNoTokens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, &mutex.Options{TTL: time.Second, RenewEvery: -1})
		var theirs backend.Token
		n.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			if want.Token == 0 || theirs > 0 {
				return n.inner.Acquire(ctx, want)
			}
			time.Sleep(time.Second) // the raise is late
			other := hold(t, newMutex(t, n, nil))
			theirs = other.Token()
			if err := other.Unlock(ctx); err != nil {
				t.Error(err)
			}
			return n.inner.Acquire(ctx, want)
		}
		tokens := queue(t, m, 2, ms)
		switch {
		case theirs == 0:
			t.Error("no raise was asked for")
		case len(tokens) != 2 || tokens[1] <= theirs:
			t.Errorf("tokens %v here, %d there in between", tokens, theirs)
		}
	})
}

func TestLeaseGoesOnWithoutARaiseThatFails(t *testing.T) {
	for name, result := range map[string]error{"unknown": errLink, "held": backend.ErrHeld} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := newNetwork()
				n.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
					if want.Token > 0 {
						return backend.Lease{}, result
					}
					return n.inner.Acquire(ctx, want)
				}
				tokens := queue(t, newMutex(t, n, nil), 5, ms)
				if wantRising(t, tokens); len(tokens) != 5 {
					t.Errorf("%d had the lock; want 5", len(tokens))
				}
				time.Sleep(time.Second)
				if acquired, released := len(n.all("acquire")), len(n.all("release")); released != 5 {
					t.Errorf("%d releases of %d attempts; want one for each grant", released, acquired)
				}
			})
		})
	}
}

func TestLeaseWithLittleLeftIsNotPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, &mutex.Options{TTL: time.Second, RenewEvery: -1, HandOver: time.Minute})
		queue(t, m, 2, 600*ms)
		if got := len(n.all("release")); got != 2 {
			t.Errorf("%d releases; want 2", got)
		}
	})
}

func TestClosedSessionPassesNothingOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, nil)
		h := hold(t, m)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if h, err := m.Hold(t.Context()); err == nil {
					h.Unlock(t.Context())
				} else if !errors.Is(err, mutex.ErrClosed) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		go h.Unlock(t.Context())
		if err := m.Session().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if err := newMutex(t, n, nil).TryLock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
