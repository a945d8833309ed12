package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// Whatever else begins and ends, in whatever order, each hold ends in its time.
func TestManyHoldsOfASessionEndEachInItsTime(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			s, err := mutex.NewSession(memory.New(nil), &mutex.Options{RenewEvery: -1})
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for i := range 200 {
				time.Sleep(time.Duration(rng.Int64N(int64(100 * ms))))
				begin, h := time.Now(), hold(t, s.Mutex(fmt.Sprint(i)))
				unlockAt := time.Duration(rng.Int64N(int64(2 * validity)))
				wg.Go(func() {
					select {
					case <-h.Lost():
						wantNow(t, begin, validity-ms)
					case <-time.After(unlockAt):
						if h.Unlock(t.Context()) != nil || time.Since(begin) >= validity {
							t.Errorf("not lost after %v", time.Since(begin))
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// slow is a layer whose observer takes an hour over each end of a hold of key.
type slow struct {
	backend.Backend
	key string
}

func (s slow) Observe(ctx context.Context, e mutex.Event) (context.Context, func(error)) {
	if e.Op == mutex.OpEnded && e.Key == s.key {
		time.Sleep(time.Hour)
	}
	return ctx, nil
}

func TestSlowObserverOfOneLossDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, err := mutex.NewSession(slow{memory.New(nil), "first"}, &mutex.Options{RenewEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		hold(t, s.Mutex("first"))
		begin, same := time.Now(), hold(t, s.Mutex("at the same time"))
		time.Sleep(time.Second)
		later := hold(t, s.Mutex("later"))
		<-same.Lost()
		wantNow(t, begin, validity-ms)
		<-later.Lost()
		wantNow(t, begin, time.Second+validity-ms)
		time.Sleep(time.Hour)
	})
}

// gone is a context that has ended and does not wake who waits for it.
type gone struct {
	context.Context
	ended atomic.Bool
}

func (g *gone) Done() <-chan struct{} { return nil }

func (g *gone) Err() error {
	if g.ended.Load() {
		return context.Canceled
	}
	return nil
}

// inLine has a goroutine for each context lock m and unlock it, one behind the other.
func inLine(t *testing.T, m *mutex.Leased, all *sync.WaitGroup, ctxs ...context.Context) {
	for _, ctx := range ctxs {
		all.Go(func() {
			h, err := m.Hold(ctx)
			if err == nil {
				err = h.Unlock(ctx)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
		synctest.Wait()
	}
}

// The heir goes away after the lease was left to it, and before it saw that: the
// next has it at once, and if there is none it is released.
func TestLeaseIsLeftToTheNextIfItsHeirGoesAway(t *testing.T) {
	for _, alone := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			n := newNetwork()
			m := newMutex(t, n, nil)
			h, heir := hold(t, m), &gone{Context: t.Context()}
			var wg sync.WaitGroup
			inLine(t, m, &wg, heir)
			if !alone {
				inLine(t, m, &wg, t.Context())
			}
			heir.ended.Store(true)
			begin := time.Now()
			if err := h.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			wg.Wait()
			synctest.Wait()
			wantNow(t, begin, 0)
			if got := len(n.all("release")); got != 1 {
				t.Errorf("%d releases; want the last one's", got)
			}
			if got := m.Session().Gates(); got != 0 {
				t.Errorf("%d gates are left", got)
			}
			free(t, n.inner)
		})
	}
}

// The heir goes away at any moment: if that is while it gets more tokens for the
// lease, the lease is given up, and the next one gets another.
func TestEachLeaseIsReleasedOnceWheneverItsHeirGoesAway(t *testing.T) {
	for seed := range 50 {
		bubble(t, func(t *testing.T) {
			n := newNetwork()
			m := newMutex(t, n, nil)
			h := hold(t, m)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			inLine(t, m, &wg, ctx, t.Context())
			if seed%2 == 0 {
				go cancel()
			}
			if err := h.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			cancel()
			wg.Wait()
			synctest.Wait()
			released := make(map[string]bool)
			for _, c := range n.all("release") {
				if released[c.lease.Owner] {
					t.Error("a lease was released twice")
				}
				released[c.lease.Owner] = true
			}
			free(t, n.inner)
			if got := m.Session().Gates(); got != 0 {
				t.Errorf("%d gates are left", got)
			}
		})
	}
}

// The call, its hold, and the owner.
func TestLockAndUnlockAllocateThrice(t *testing.T) {
	m := newMutex(t, memory.New(nil), nil)
	got := testing.AllocsPerRun(1000, func() {
		if m.Lock(t.Context()) != nil || m.Unlock(t.Context()) != nil {
			t.Error("failed")
		}
	})
	if got > 3 {
		t.Errorf("%v allocations; want 3", got)
	}
}
