package mutex_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

func TestCancelAtTheLocalGateShowsBoth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, nil)
		hold(t, m)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		wantErr(t, m.Lock(ctx), context.DeadlineExceeded, mutex.ErrHeld)
		wantNow(t, begin, time.Second)
		wantErr(t, m.TryLock(t.Context()), mutex.ErrHeld)
		if got := len(n.all("acquire")); got != 1 {
			t.Errorf("%d attempts; want none for those who did not pass the gate", got-1)
		}
	})
}

// Case 44.
func TestGoroutinesOfASessionExcludeEachOtherInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, err := mutex.NewSession(memory.New(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		inside := false
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * ms)
				m := s.Mutex("k")
				if err := m.Lock(t.Context()); err != nil {
					t.Error(err)
				}
				if inside {
					t.Error("two goroutines hold the lock")
				}
				inside = true
				time.Sleep(time.Second)
				order = append(order, i)
				inside = false
				if err := m.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if !slices.IsSorted(order) || len(order) != 20 {
			t.Errorf("in order %v", order)
		}
		if got := s.Gates(); got != 0 {
			t.Errorf("%d keys are remembered; want 0", got)
		}
	})
}

func TestKeysTakeNoMemoryWhenNobodyUsesThem(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		s, err := mutex.NewSession(n, nil)
		if err != nil {
			t.Fatal(err)
		}
		key := func(i int) *mutex.Leased { return s.Mutex(string(rune('a' + i))) }
		for i := range 10 {
			if err := key(i).Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantErr(t, key(i).TryLock(t.Context()), mutex.ErrHeld)
		}
		n.change(func() { n.release = silence })
		wantErr(t, key(0).Unlock(dead(t)), context.Canceled)
		n.change(func() { n.release = nil })
		for i := range 9 {
			if err := key(i + 1).Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Gates(); got != 1 {
			t.Errorf("%d keys are remembered; want the one that is not confirmed", got)
		}
		time.Sleep(10 * time.Second)
		if got := s.Gates(); got != 0 {
			t.Errorf("%d keys are remembered after the term; want 0", got)
		}
	})
}
