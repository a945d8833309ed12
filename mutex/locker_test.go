package mutex_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// panicOf is what f panics with.
func panicOf(f func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	f()
	return nil
}

func TestLockerPanicsOnMisuseAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New(nil)
		m := newMutex(t, b, nil)
		l := mutex.Locker(t.Context(), m)
		wantErr(t, panicOf(l.Unlock), mutex.ErrNotLocked)
		l.Lock()
		if l.TryLock() {
			t.Error("locked twice")
		}
		l.Unlock()
		if !l.TryLock() {
			t.Error("not free after Unlock")
		}
		l.Unlock()
		bad := mutex.Locker(t.Context(), m.Session().Mutex(""))
		wantInvalid(t, panicOf(bad.Lock), "Key")
		wantInvalid(t, panicOf(func() { bad.TryLock() }), "Key")
		if err := m.Session().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantErr(t, panicOf(l.Lock), mutex.ErrClosed)
		wantErr(t, panicOf(func() { l.TryLock() }), mutex.ErrClosed)
	})
}

func TestLockerGoesOnThroughAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		down := func(context.Context, backend.Lease) (backend.Lease, error) { return backend.Lease{}, errLink }
		n.acquire = down
		m := newMutex(t, n, nil)
		l := mutex.Locker(t.Context(), m)
		if l.TryLock() {
			t.Error("locked without a server")
		}
		begin := time.Now()
		time.AfterFunc(time.Minute, func() { n.change(func() { n.acquire = nil }) })
		l.Lock()
		if d := time.Since(begin); d < time.Minute || d > 61*time.Second {
			t.Errorf("locked after %v; want a minute", d)
		}
		if got := len(n.all("acquire")); got > 1000 {
			t.Errorf("%d attempts in a minute", got)
		}
		l.Unlock()

		n.change(func() { n.acquire = down })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, panicOf(mutex.Locker(ctx, m).Lock), errLink)
		if ctx.Err() == nil {
			t.Error("panicked before its context ended")
		}
	})
}

func TestLockerReportsALostOrUnconfirmedUnlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		var got []error
		l := mutex.Locker(t.Context(), newMutex(t, n, &mutex.Options{
			RenewEvery: -1,
			Report: func(key string, err error) {
				if key != "k" || strings.Contains(err.Error(), n.all("acquire")[0].lease.Owner) {
					t.Errorf("reported %q: %v", key, err)
				}
				got = append(got, err)
			},
		}))
		l.Lock()
		time.Sleep(time.Minute)
		l.Unlock()
		synctest.Wait()
		l.Lock()
		n.change(func() { n.release = func(context.Context, backend.Lease) error { return errLink } })
		l.Unlock()
		if len(got) != 2 || !errors.Is(got[0], mutex.ErrLost) || !errors.Is(got[1], errLink) {
			t.Errorf("reported %v; want ErrLost and %v", got, errLink)
		}
	})
}

func TestCondOverALockerWakesThisProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := sync.NewCond(mutex.Locker(t.Context(), newMutex(t, memory.New(nil), nil)))
		ready, seen := false, 0
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				c.L.Lock()
				defer c.L.Unlock()
				for !ready {
					c.Wait()
				}
				seen++
			})
		}
		time.Sleep(time.Minute)
		c.L.Lock()
		ready = true
		c.Broadcast()
		c.L.Unlock()
		wg.Wait()
		if seen != 10 {
			t.Errorf("%d were woken; want 10", seen)
		}
	})
}
