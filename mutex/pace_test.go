package mutex_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/retry"
)

// Case 16.
func TestOnePolicyServesManyLocksAndTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newNetwork()
		h, err := newMutex(t, b.inner, nil).Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := &mutex.Options{Wait: retry.Limit(retry.Constant(100*ms), 7)}
		for range 2 {
			before := len(b.all("acquire"))
			var wg sync.WaitGroup
			for range 50 {
				m := newMutex(t, b, o)
				wg.Go(func() {
					begin := time.Now()
					wantErr(t, m.Lock(t.Context()), mutex.ErrHeld)
					wantNow(t, begin, 700*ms)
				})
			}
			wg.Wait()
			if got := len(b.all("acquire")) - before; got != 50*8 {
				t.Errorf("%d attempts; want %d", got, 50*8)
			}
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestPolicyThatDoesNotRestIsNoBusyLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		hold(t, newMutex(t, n.inner, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o := &mutex.Options{Wait: func() backoff.BackOff { return &backoff.ZeroBackOff{} }}
		wantErr(t, newMutex(t, n, o).Lock(ctx), context.DeadlineExceeded, mutex.ErrHeld)
		if got := len(n.all("acquire")); got > 1001 {
			t.Errorf("%d attempts in a second", got)
		}
	})
}
