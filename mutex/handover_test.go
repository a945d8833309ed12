package mutex_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// Case 42: however many goroutines of a session wait, a hand-over among them
// costs a release and an acquire at most, also where the backend can't wake
// anybody.
func TestHandOverCostsTheSameHoweverManyGoroutinesWait(t *testing.T) {
	for _, waiters := range []int{3, 30, 300} {
		bubble(t, func(t *testing.T) {
			n := newNetwork()
			m := newMutex(t, n, nil)
			inTurns(t, waiters, func(int) mutex.Mutex { return m })
			if got := len(n.all("")); got > 2*waiters {
				t.Errorf("%d calls for %d holds; want two each at most", got, waiters)
			}
		})
	}
}

// Case 42, among processes, where the backend keeps the line (memory does): what
// a waiter asks for does not depend on how many others there are.
func TestHandOverCostsTheSameHoweverManyProcessesStandInLine(t *testing.T) {
	for _, waiters := range []int{3, 30, 300} {
		bubble(t, func(t *testing.T) {
			inner := memory.New(nil)
			w := &waiting{network: &network{inner: inner}, wait: inner.Wait}
			inTurns(t, waiters, func(int) mutex.Mutex { return newMutex(t, w, nil) })
			if got := len(w.all("")); got > 3*waiters { // an Acquire, a Wait and a Release
				t.Errorf("%d calls for %d holds; want three each at most", got, waiters)
			}
		})
	}
}

// inTurns has many lock one key at the same moment, for a millisecond each.
func inTurns(t *testing.T, many int, mutexOf func(i int) mutex.Mutex) {
	t.Helper()
	var all sync.WaitGroup
	for i := range many {
		m := mutexOf(i)
		all.Go(func() {
			if err := m.Lock(t.Context()); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(ms)
			if err := m.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// Case 48: memory does not grow with the number of names that were locked.
func TestMemoryIsBoundedOverManyNames(t *testing.T) {
	s, err := mutex.NewSession(memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := func(n int) uint64 {
		for i := range n {
			err := s.Mutex(fmt.Sprint("name-", i)).Do(t.Context(), func(context.Context) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	few, many := names(1000), names(20_000)
	if s.Gates() != 0 || many > few+1<<20 {
		t.Errorf("%d bytes after 1,000 names, %d after 20,000, and %d keys are remembered", few, many, s.Gates())
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
