package mutex_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// What an outage leaves to be released waits for it without a goroutine, and is
// released when it is over.
func TestOutageCollectsNoGoroutines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const many = 3000
		n := newNetwork()
		n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			if _, err := n.inner.Acquire(ctx, l); err != nil {
				t.Error(err)
			}
			return backend.Lease{}, errLink // it was granted, and nobody is told
		}
		n.release = func(context.Context, backend.Lease) error {
			time.Sleep(time.Second)
			return errLink
		}
		s, err := mutex.NewSession(n, &mutex.Options{TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		before := runtime.NumGoroutine()
		for i := range many {
			wantErr(t, s.Mutex(fmt.Sprint("key-", i)).Lock(t.Context()), errLink)
		}
		synctest.Wait()
		if got := runtime.NumGoroutine() - before; got > 600 {
			t.Errorf("%d goroutines for %d attempts", got, many)
		}
		n.change(func() { n.acquire = nil })
		time.Sleep(time.Minute)
		n.change(func() { n.release = nil })
		time.Sleep(2 * time.Second)
		if got := runtime.NumGoroutine() - before; got > 10 {
			t.Errorf("%d goroutines when all is well again", got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range many {
			l := backend.Lease{Key: fmt.Sprint("key-", i), Owner: "next", TTL: time.Second, Start: time.Now()}
			if _, err := n.inner.Acquire(t.Context(), l); err != nil {
				t.Fatalf("%s is not free: %v", l.Key, err)
			}
		}
	})
}
