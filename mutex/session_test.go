package mutex_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Case 43.
func TestCloseSendsWaitersHomeAndReleasesHolds(t *testing.T) {
	for name, b := range map[string]func(backend.Backend) backend.Backend{
		"waiter":  func(b backend.Backend) backend.Backend { return b },
		"polling": func(b backend.Backend) backend.Backend { return &network{inner: b} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				inner := memory.New(nil)
				hold(t, newMutex(t, inner, nil)) // keeps "k"
				s, err := mutex.NewSession(b(inner), nil)
				if err != nil {
					t.Fatal(err)
				}
				mine, err := s.Mutex("mine").Hold(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				for _, key := range []string{"k", "k", "mine"} {
					wg.Go(func() {
						err := s.Mutex(key).Lock(t.Context())
						wantErr(t, err, mutex.ErrClosed)
						if errors.Is(err, context.Canceled) {
							t.Errorf("Lock = %v; but nobody cancelled it", err)
						}
					})
				}
				time.Sleep(time.Minute)
				begin := time.Now()
				for range 2 {
					if err := s.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
				wg.Wait()
				wantNow(t, begin, 0)
				if reason(mine) != mutex.Closed || !isClosed(mine.Lost()) {
					t.Errorf("after Close: %v; want %q", mine.Err(), mutex.Closed)
				}
				l := backend.Lease{Key: "mine", Owner: "other", TTL: time.Second}
				if _, err := inner.Acquire(t.Context(), l); err != nil {
					t.Error(err)
				}
				wantErr(t, mine.Unlock(t.Context()), mutex.ErrLost)
				wantErr(t, s.Mutex("other").Lock(t.Context()), mutex.ErrClosed)
				wantErr(t, s.Mutex("other").TryLock(t.Context()), mutex.ErrClosed)
			})
		})
	}
}

// The holder is told before its key is released.
func TestCloseTellsHoldersFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, nil)
		h := hold(t, m)
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		lost := h.Lost()
		n.release = func(_ context.Context, l backend.Lease) error {
			if !isClosed(lost) || ctx.Err() == nil || h.Until().After(time.Now()) {
				t.Error("released before the holder was told")
			}
			return n.inner.Release(t.Context(), l)
		}
		if err := m.Session().Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := len(n.all("release")); got != 1 {
			t.Errorf("%d releases; want 1", got)
		}
	})
}

func TestCloseWorksWithADeadContextAndIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, nil)
		hold(t, m)
		if err := m.Session().Close(dead(t)); err != nil {
			t.Error(err)
		}
		free(t, n.inner)

		n.release = silence
		m, begin := newMutex(t, n, nil), time.Now()
		hold(t, m)
		err := m.Session().Close(dead(t))
		wantNow(t, begin, time.Second)
		wantErr(t, err, context.Canceled)
	})
}

// Law 14: what works in the background is waited for, and ended at last.
func TestCloseEndsReleasesInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(context.Context, backend.Lease) (backend.Lease, error) { return backend.Lease{}, errLink }
		n.release = silence
		m, begin := newMutex(t, n, nil), time.Now()
		wantErr(t, m.Lock(t.Context()), errLink)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		wantErr(t, m.Session().Close(ctx), context.DeadlineExceeded)
		synctest.Wait()
		wantNow(t, begin, 2*time.Second)
		if err := m.Session().Close(t.Context()); err != nil {
			t.Errorf("nothing is under way any more, but: %v", err)
		}
		wantNow(t, begin, 2*time.Second)
	})
}

func TestGrantThatArrivesDuringCloseIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			<-ctx.Done()
			return n.inner.Acquire(t.Context(), l)
		}
		m := newMutex(t, n, nil)
		var wg sync.WaitGroup
		wg.Go(func() { wantErr(t, m.Lock(t.Context()), mutex.ErrClosed) })
		time.Sleep(time.Second)
		if err := m.Session().Close(t.Context()); err != nil {
			t.Error(err)
		}
		free(t, n.inner)
		wg.Wait()
	})
}

func TestSessionsAreStrangers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New(nil)
		one, two := newMutex(t, b, nil), newMutex(t, b, nil)
		hold(t, one)
		wantErr(t, two.TryLock(t.Context()), mutex.ErrHeld)
		if err := two.Session().Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
