package conformance_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/conformance"
)

// What clients have started for all of them, and what is replaced in time by the
// next, is nobody's to end.
func TestWhatClientsShareIsNotLeftBehind(t *testing.T) {
	for _, around := range []func(*testing.T, func(*testing.T)){nil, synctest.Test} {
		stop := make(chan struct{})
		var once sync.Once
		var mu sync.Mutex
		var latest chan struct{}
		run := func(t *testing.T) {
			stop, once, latest = make(chan struct{}), sync.Once{}, nil
			conformance.Check(t, conformance.Harness{New: func(testing.TB) backend.Backend {
				once.Do(func() { go func() { <-stop }() })
				mu.Lock()
				defer mu.Unlock()
				if latest != nil {
					close(latest)
				}
				mine := make(chan struct{})
				latest = mine
				go func() { <-mine }()
				return memory.New(nil)
			}}, "endings/nothing-stays")
			close(stop)
			close(latest)
		}
		if around == nil {
			run(t)
		} else {
			around(t, run)
		}
	}
}

// A client that ends before its case does is closed as testing does it: its
// context first, then what was left to Cleanup, the last first and each once,
// though one of them ends its goroutine.
func TestClientsThatEndAreClosedLikeTests(t *testing.T) {
	var mu sync.Mutex
	closed := make(map[testing.TB][]int)
	h := conformance.Harness{New: func(t testing.TB) backend.Backend {
		for i := range 3 {
			t.Cleanup(func() {
				mu.Lock()
				defer mu.Unlock()
				if closed[t] = append(closed[t], i); t.Context().Err() == nil {
					t.Error("the context is still alive")
				}
				if i == 1 {
					runtime.Goexit()
				}
			})
		}
		return memory.New(nil)
	}}
	if r := record(t, h, "endings/nothing-stays"); r.failed {
		t.Error(r)
	}
	for _, order := range closed {
		if !slices.Equal(order, []int{2, 1, 0}) {
			t.Errorf("closed in the order %v", order)
		}
	}
	if len(closed) < 2 {
		t.Errorf("%d clients were closed", len(closed))
	}
}

// A client whose Close takes a while, in a store that others use, has ended.
func TestSlowCloseIsNoLeak(t *testing.T) {
	h := harness(func(f *faulty) {
		f.afterCancel(func() { go time.Sleep(3 * time.Second) })
		f.close = func() { time.Sleep(20 * time.Second) }
	})
	if r := record(t, h, "endings/nothing-stays"); r.failed {
		t.Error(r)
	}
}
