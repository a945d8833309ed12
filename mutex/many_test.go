package mutex_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// An idle hold takes no goroutine.
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
