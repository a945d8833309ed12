package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
)

// line starts n waiters for k, one after the other, and tells of their grants.
func line(t *testing.T, b *memory.Backend, n int) <-chan backend.Lease {
	grants := make(chan backend.Lease, n)
	for i := range n {
		go func() {
			if got, err := b.Wait(t.Context(), want("k", fmt.Sprint("waiter ", i))); err == nil {
				grants <- got
			}
		}()
		synctest.Wait()
	}
	return grants
}

func TestWaitersAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil)
		held := acquire(t, b, want("k", "first"))
		grants := line(t, b, 10)
		for i := range 10 {
			time.Sleep(10 * time.Millisecond)
			if err := b.Release(t.Context(), held); err != nil {
				t.Fatalf("Release: %v", err)
			}
			released, token := time.Now(), held.Token
			// The key has been handed over: whoever comes now is too late.
			if _, err := b.Acquire(t.Context(), want("k", "barger")); !errors.Is(err, backend.ErrHeld) {
				t.Fatalf("Acquire of a key with a line: %v, want ErrHeld", err)
			}
			held = <-grants
			if wanted := fmt.Sprint("waiter ", i); held.Owner != wanted {
				t.Errorf("grant %d went to %s, want %s", i, held.Owner, wanted)
			}
			if !held.Start.Equal(released) || held.TTL != term || held.Token <= token {
				t.Errorf("granted %+v: want all of the term from %v and a token above %d", held, released, token)
			}
		}
	})
}

func TestExpiryHandsTheKeyOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil)
		acquire(t, b, want("k", "dead"))
		start := time.Now()
		grants := line(t, b, 2) // the first of which is not heard of again either
		for i := range 2 {
			got := <-grants
			if passed, wanted := time.Since(start), term*time.Duration(i+1); passed != wanted || got.Start != time.Now() {
				t.Errorf("grant %d after %v, from %v: want after %v, from %v", i, passed, got.Start, wanted, time.Now())
			}
		}
	})
}

func TestAWaiterWithAShortTermAfterALongHoldEndsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil)
		long := want("k", "long")
		long.TTL = backend.MaxTTL
		held := acquire(t, b, long)
		grants := line(t, b, 1)
		if err := b.Release(t.Context(), held); err != nil {
			t.Fatalf("Release: %v", err)
		}
		<-grants
		time.Sleep(term)
		synctest.Wait()
		if got := b.Keys(); got != 0 {
			t.Errorf("at the end of the waiter's term %d keys are kept, want none", got)
		}
	})
}

func TestACancelledWaiterLeavesTheLineAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil)
		held := acquire(t, b, want("k", "first"))
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := b.Wait(ctx, want("k", "leaver"))
			left <- err
		}()
		synctest.Wait()
		grants := line(t, b, 1)

		start := time.Now()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) || time.Since(start) != 0 {
			t.Errorf("Wait: %v after %v, want context.Canceled at once", err, time.Since(start))
		}
		if err := b.Release(t.Context(), held); err != nil {
			t.Fatalf("Release: %v", err)
		}
		if got := <-grants; got.Owner != "waiter 0" || time.Since(start) != 0 {
			t.Errorf("granted to %s after %v, want waiter 0 at once", got.Owner, time.Since(start))
		}
	})
}

// The grant may win the race against the cancel unseen. The Release that the
// caller owes undoes it.
func TestReleaseUndoesAGrantThatRacedWithTheCancel(t *testing.T) {
	b := memory.New(nil)
	granted := 0
	for i := range 2000 {
		first, second := want("k", fmt.Sprint("first ", i)), want("k", fmt.Sprint("second ", i))
		acquire(t, b, first)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := b.Wait(ctx, second)
			done <- err
		}()
		go cancel()
		if err := b.Release(t.Context(), first); err != nil {
			t.Fatalf("Release: %v", err)
		}
		if <-done == nil {
			granted++
		}
		if err := b.Release(t.Context(), second); err != nil {
			t.Fatalf("Release of what may have been granted: %v", err)
		}
		if got := b.Keys(); got != 0 {
			t.Fatalf("%d keys are kept, want none", got)
		}
	}
	t.Logf("the grant won %d times of 2000", granted)
}

func TestAGrantInLineKeepsToTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil)
		held := acquire(t, b, want("k", "first"))
		w := want("k", "second")
		w.Token = 500
		go func() { _ = b.Release(t.Context(), held) }()
		if got, err := b.Wait(t.Context(), w); err != nil || got.Token != 500 {
			t.Errorf("granted token %d (%v), want 500", got.Token, err)
		}
	})
}
