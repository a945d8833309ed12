package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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

// Case 17, and law 15.
func TestBadInputIsRefusedByName(t *testing.T) {
	n := newNetwork()
	var nothing *memory.Backend
	for _, c := range []struct {
		field string
		b     backend.Backend
		o     mutex.Options
	}{
		{"Backend", nil, mutex.Options{}},
		{"Backend", nothing, mutex.Options{}},
		{"TTL", n, mutex.Options{TTL: -time.Second}},
		{"TTL", n, mutex.Options{TTL: 1}},
		{"TTL", n, mutex.Options{TTL: ms}},
		{"TTL", n, mutex.Options{TTL: time.Second + time.Microsecond}},
		{"TTL", n, mutex.Options{TTL: backend.MaxTTL + ms}},
		{"MaxHold", n, mutex.Options{MaxHold: time.Second}},
		{"MaxHold", n, mutex.Options{MaxHold: -1}},
		{"MinHold", n, mutex.Options{MinHold: -1}},
		{"MinHold", n, mutex.Options{MinHold: 11 * time.Second}},
		{"RenewEvery", n, mutex.Options{RenewEvery: validity}},
		{"RenewEvery", n, mutex.Options{RenewEvery: time.Microsecond}},
	} {
		_, err := mutex.NewSession(c.b, &c.o)
		wantInvalid(t, err, c.field)
		_, err = mutex.New(c.b, "k", &c.o)
		wantInvalid(t, err, c.field)
	}
	s, err := mutex.NewSession(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", strings.Repeat("k", 10_000), "a\x00b"} {
		_, err := mutex.New(n, key, nil)
		wantInvalid(t, err, "Key")
		wantInvalid(t, s.Mutex(key).Lock(t.Context()), "Key")
		wantInvalid(t, s.Mutex(key).TryLock(t.Context()), "Key")
	}
	if got := n.all(""); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *backend.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != field {
		t.Errorf("error is %v; want an InvalidError of %s", err, field)
	}
}

func TestLongTermsRaiseTheDefaultOfMaxHold(t *testing.T) {
	if _, err := mutex.NewSession(newNetwork(), &mutex.Options{TTL: backend.MaxTTL, RenewEvery: -1}); err != nil {
		t.Error(err)
	}
}

// What the backend refuses is returned as it is, and nothing is left behind.
func TestRefusalOfTheBackendIsReturned(t *testing.T) {
	n := newNetwork()
	n.acquire = func(context.Context, backend.Lease) (backend.Lease, error) {
		return backend.Lease{}, &backend.InvalidError{Field: "TTL", Reason: "is more than this node allows"}
	}
	wantInvalid(t, newMutex(t, n, nil).Lock(t.Context()), "TTL")
	if got := len(n.all("")); got != 1 {
		t.Errorf("%d calls; want 1", got)
	}
}

// Ten thousand holds are renewed for a minute without a goroutine while idle.
func TestTenThousandHoldsAtOnce(t *testing.T) {
	const many = 10_000
	s, err := mutex.NewSession(memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]string, many)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	holds := make([]*mutex.Hold, many)
	for i, key := range keys {
		if holds[i], err = s.Mutex(key).Hold(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := runtime.NumGoroutine() - goroutines; got > 10 {
		t.Errorf("%d goroutines for %d holds", got, many)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes a hold, the memory backend's part included", (after.HeapAlloc-before.HeapAlloc)/many)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Gates(); got != many {
		t.Errorf("%d gates; want them shut until Unlock", got)
	}
	for _, h := range holds {
		wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
	}
	if got := s.Gates(); got != 0 {
		t.Errorf("%d gates; want none", got)
	}
}

// Renewals of many holds against a dead server: a bounded number of calls, and
// every loss in time.
func TestManyRenewalsAreBoundedAndDelayNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const many = 2000
		n := newNetwork()
		var now, most atomic.Int64
		n.renew = func(ctx context.Context, l backend.Lease) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return silence(ctx, l)
		}
		s, err := mutex.NewSession(n, nil)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var holds []*mutex.Hold
		for i := range many {
			h, err := s.Mutex(fmt.Sprint(i)).Hold(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			holds = append(holds, h)
		}
		time.Sleep(validity - 2*ms)
		for _, h := range holds {
			if h.Err() != nil {
				t.Fatal("lost too early")
			}
		}
		for _, h := range holds {
			<-h.Lost()
		}
		wantNow(t, begin, validity-ms)
		if got := most.Load(); got == 0 || got > 256 {
			t.Errorf("%d renewals at a time", got)
		}
		time.Sleep(time.Minute) // those under way end
	})
}
