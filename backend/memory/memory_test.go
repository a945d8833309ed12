package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
)

const term = time.Second

func want(key, owner string) backend.Lease {
	return backend.Lease{Key: key, Owner: owner, TTL: term, Start: time.Now()}
}

func acquire(t *testing.T, b *memory.Backend, w backend.Lease) backend.Lease {
	t.Helper()
	got, err := b.Acquire(t.Context(), w)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return got
}

func TestALeaseEndsOnTimeUnobserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil)
		acquire(t, b, want("k", "a"))
		time.Sleep(term - time.Nanosecond)
		synctest.Wait()
		if got := b.Keys(); got != 1 {
			t.Errorf("1 ns before the end of the term %d keys are kept, want 1", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := b.Keys(); got != 0 {
			t.Errorf("at the end of the term %d keys are kept, want none", got)
		}
	})
}

func TestARenewedLeaseEndsOnTimeToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil)
		held := acquire(t, b, want("k", "a"))
		for range 10 {
			time.Sleep(term * 9 / 10)
			if err := b.Renew(t.Context(), held); err != nil {
				t.Fatalf("Renew: %v", err)
			}
		}
		time.Sleep(term - time.Nanosecond)
		synctest.Wait()
		if got := b.Keys(); got != 1 {
			t.Errorf("1 ns before the end of the term %d keys are kept, want 1", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := b.Keys(); got != 0 {
			t.Errorf("at the end of the term %d keys are kept, want none", got)
		}
	})
}

// A hold's timer is used again for the next key. Neither a longer nor a shorter
// term before may show.
func TestAHoldEndsOnTimeWhateverTheOneBeforeDid(t *testing.T) {
	for _, before := range []time.Duration{backend.MinTTL, backend.MaxTTL} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(nil)
			for i := range 1000 { // far more keys than shards
				w := want(fmt.Sprint("before/", i), "a")
				w.TTL = before
				if err := b.Release(t.Context(), acquire(t, b, w)); err != nil {
					t.Fatalf("Release: %v", err)
				}
			}
			for i := range 1000 {
				acquire(t, b, want(fmt.Sprint("after/", i), "a"))
			}
			time.Sleep(term - time.Nanosecond)
			synctest.Wait()
			if got := b.Keys(); got != 1000 {
				t.Errorf("after %v: 1 ns before the end %d keys are kept, want 1000", before, got)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if got := b.Keys(); got != 0 {
				t.Errorf("after %v: at the end %d keys are kept, want none", before, got)
			}
		})
	}
}

// Case 48.
func TestNoKeyIsLeftAfterManyNames(t *testing.T) {
	b := memory.New(nil)
	for i := range 100_000 {
		held := acquire(t, b, want(fmt.Sprint("k", i), "a"))
		if err := b.Release(t.Context(), held); err != nil {
			t.Fatalf("Release: %v", err)
		}
	}
	if got := b.Keys(); got != 0 {
		t.Errorf("%d keys are kept, want none", got)
	}
}

func TestOneCounterOrdersTheTokensOfAllKeys(t *testing.T) {
	b := memory.New(&memory.Options{After: 10})
	var last backend.Token = 10
	draw := func(key string, floor backend.Token) {
		t.Helper()
		w := want(key, "a")
		w.Token = floor
		got := acquire(t, b, w).Token
		if wanted := max(last+1, floor); got != wanted {
			t.Errorf("%s with floor %d: token %d, want %d", key, floor, got, wanted)
		}
		last = got
	}
	draw("x", 0)
	draw("y", 5)
	draw("z", 100)
	draw("u", 0)
}

func TestNoTokenIsHandedOutThatIsNotValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil)
		w := want("k", "last")
		w.Token = backend.MaxToken
		held := acquire(t, b, w)
		waited := make(chan error)
		for i := range 2 {
			go func() {
				_, err := b.Wait(t.Context(), want("k", fmt.Sprint("waiter ", i)))
				waited <- err
			}()
		}
		synctest.Wait()
		if err := b.Release(t.Context(), held); err != nil {
			t.Fatalf("Release: %v", err)
		}
		_, err := b.Acquire(t.Context(), want("k", "next"))
		for _, err := range []error{<-waited, <-waited, err} {
			if err == nil || errors.Is(err, backend.ErrHeld) {
				t.Errorf("after the last token: %v, want an error, and not ErrHeld", err)
			}
		}
		if got := b.Keys(); got != 0 {
			t.Errorf("%d keys are kept, want none", got)
		}
	})
}

func TestEveryCallOfManyGoroutinesEnds(t *testing.T) {
	b := memory.New(nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 300 {
				w := want(fmt.Sprint("k", n%3), fmt.Sprint("owner ", i, " ", n))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%40)*time.Microsecond)
				if _, err := b.Wait(ctx, w); err == nil {
					_ = b.Renew(t.Context(), w)
				}
				cancel()
				_ = b.Release(t.Context(), w)
			}
		})
	}
	wg.Wait()
	if got := b.Keys(); got != 0 {
		t.Errorf("%d keys are kept, want none", got)
	}
}

func TestACycleAllocatesNothing(t *testing.T) {
	b := memory.New(nil)
	ctx, w := t.Context(), want("k", "a")
	got := testing.AllocsPerRun(1000, func() {
		held, err := b.Acquire(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Release(ctx, held); err != nil {
			t.Fatal(err)
		}
	})
	if got > 0 {
		t.Errorf("an uncontended Acquire and Release: %v allocations, want none", got)
	}
}

func BenchmarkCycle(b *testing.B) {
	m, ctx := memory.New(nil), b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		w := want(fmt.Sprintf("%p", pb), "a")
		for pb.Next() {
			held, err := m.Acquire(ctx, w)
			if err != nil {
				b.Error(err)
			}
			if err := m.Release(ctx, held); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkRenew(b *testing.B) {
	m, ctx := memory.New(nil), b.Context()
	w := backend.Lease{Key: "k", Owner: "a", TTL: time.Hour}
	if _, err := m.Acquire(ctx, w); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := m.Renew(ctx, w); err != nil {
			b.Fatal(err)
		}
	}
}
