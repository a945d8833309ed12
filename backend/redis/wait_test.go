package redis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// waiting runs Wait beside the test and says when it returned.
func waiting(t *testing.T, b *redis.Backend, ctx context.Context, key string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		got, err := b.Wait(ctx, lease(key, 10*time.Second))
		if got.TTL != 0 || got.Owner != "" {
			err = errors.Join(err, errors.New("a hint that looks like a grant"))
		}
		done <- err
	}()
	return done
}

// hint waits for the end of a Wait, for less than its polls would take.
func hint(t *testing.T, why string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", why, err)
		}
	case <-time.After(900 * time.Millisecond): // the earliest poll is at 1 s
		t.Errorf("%s: not woken", why)
		<-done
	}
}

func TestWaitForAFreeKeyReturnsAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := unordered(t, s.Client())
		hint(t, "free", waiting(t, b, t.Context(), "k"))
	})
}

// The key never expires and its waiters do not poll so early: what wakes them
// is the release alone.
func TestReleaseWakesWaitersOfOtherClients(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		holder, b := unordered(t, s.Client()), unordered(t, worst(t, s.Addr))
		for _, key := range []string{"k", "{k}", "k{x}"} {
			held := mustAcquire(t, holder, lease(key, 20*time.Second))
			var all []<-chan error
			for range 5 {
				all = append(all, waiting(t, b, t.Context(), key))
			}
			eventually(t, "the subscription is confirmed", func() bool { return b.Listening(key) })
			time.Sleep(20 * time.Millisecond) // until they sleep; if not, the look at the key finds it free
			mustRelease(t, holder, held)
			for _, done := range all {
				hint(t, key, done)
			}
		}
	})
}

// The first waiter's subscription races with the release: none may be missed.
func TestReleaseBesideTheSubscriptionIsNotMissed(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		holder, b := unordered(t, s.Client()), unordered(t, s.Client())
		for i := range 50 {
			key := fmt.Sprint("k", i)
			held := mustAcquire(t, holder, lease(key, 20*time.Second))
			done := waiting(t, b, t.Context(), key)
			time.Sleep(time.Duration(i) * 50 * time.Microsecond)
			mustRelease(t, holder, held)
			hint(t, key, done)
		}
	})
}

// Case 41: nobody is told of an expiry, nor of a plain client's DEL.
func TestWaitEndsWithTheHoldersTerm(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := unordered(t, c)
		c.SetNX(t.Context(), "k", "plain", 300*time.Millisecond)
		hint(t, "expiry", waiting(t, b, t.Context(), "k"))
		eventually(t, "the key has gone", func() bool { return c.Exists(t.Context(), "k").Val() == 0 })
	})
}

func TestWaitPollsWhereNobodyWakesIt(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := unordered(t, c)
		c.Set(t.Context(), "k", "no expiry", 0)
		done := waiting(t, b, t.Context(), "k")
		eventually(t, "the subscription is confirmed", func() bool { return b.Listening("k") })
		c.Del(t.Context(), "k") // wakes nobody
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Error("Wait has no bound")
		}
	})
}

// A waiter that gives up owes a release, which undoes nothing and is nil.
func TestReleaseAfterWaitIsNil(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, s.Client())
		held := mustAcquire(t, b, lease("k", 10*time.Second))
		want := lease("k", 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := b.Wait(ctx, want); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait: %v", err)
		}
		mustRelease(t, b, want)
		if err := b.Renew(t.Context(), held); err != nil {
			t.Errorf("the holder lost its lease: %v", err)
		}
		if _, err := b.Acquire(t.Context(), want); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("a released owner acquires: %v", err)
		}
	})
}
