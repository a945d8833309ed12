package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
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

func TestLeaseIsLeftToTheNextIfItsHeirGoesAway(t *testing.T) {
	for seed := range 50 {
		bubble(t, func(t *testing.T) {
			n := newNetwork()
			m := newMutex(t, n, nil)
			h := hold(t, m)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			for _, ctx := range []context.Context{ctx, t.Context()} {
				wg.Go(func() {
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
			if seed%2 == 0 {
				go cancel()
			}
			if err := h.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			cancel()
			wg.Wait()
			synctest.Wait()
			if got := len(n.all("release")); got != 1 {
				t.Errorf("%d releases; want the last one's", got)
			}
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
