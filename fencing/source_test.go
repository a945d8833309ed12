package fencing_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
)

func TestCounterReachesFloorsAndNeverGoesBack(t *testing.T) {
	c := fencing.NewCounter(10)
	for _, s := range []struct {
		key         string
		floor, want fencing.Token
	}{{"a", 0, 11}, {"a", 5, 12}, {"b", 0, 13}, {"a", 100, 100}, {"b", 100, 101}, {"b", 0, 102}} {
		if got, err := c.Next(t.Context(), s.key, s.floor); got != s.want || err != nil {
			t.Errorf("Next(%q, %d) = %d, %v; want %d", s.key, s.floor, got, err, s.want)
		}
	}
}

func TestCountersBeginAboveZero(t *testing.T) {
	for _, c := range []*fencing.Counter{new(fencing.Counter), fencing.NewCounter(0), fencing.NewCounter(-5)} {
		if got, err := c.Next(t.Context(), "k", 0); got != 1 || err != nil {
			t.Errorf("the first token is %d, %v; want 1", got, err)
		}
	}
}

func TestCounterGivesNoTokenThatIsNotValid(t *testing.T) {
	var invalid *backend.InvalidError
	c := fencing.NewCounter(0)
	for _, floor := range []fencing.Token{-1, backend.MaxToken + 1} {
		if _, err := c.Next(t.Context(), "k", floor); !errors.As(err, &invalid) {
			t.Errorf("Next with floor %d: %v, want an InvalidError", floor, err)
		}
	}
	if got, err := c.Next(t.Context(), "k", backend.MaxToken); got != backend.MaxToken || err != nil {
		t.Errorf("the last token is %d, %v", got, err)
	}
	for range 2 {
		if got, err := c.Next(t.Context(), "k", 0); err == nil {
			t.Errorf("after the last token: %d, want an error", got)
		}
	}
	if got, err := fencing.NewCounter(1<<62).Next(t.Context(), "k", 0); err == nil {
		t.Errorf("after a number that is no token: %d, want an error", got)
	}
}

func TestCounterOfADeadContextDrawsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := fencing.NewCounter(0)
	if _, err := c.Next(ctx, "k", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Next: %v, want context.Canceled", err)
	}
	if got, _ := c.Next(t.Context(), "k", 0); got != 1 {
		t.Errorf("then Next = %d, want 1", got)
	}
}

func TestCounterGivesNoTokenTwice(t *testing.T) {
	c := fencing.NewCounter(0)
	var mu sync.Mutex
	seen := make(map[fencing.Token]bool)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var last fencing.Token
			for n := range fencing.Token(500) {
				got, err := c.Next(t.Context(), "k", n*fencing.Token(i))
				mu.Lock()
				if err != nil || got <= last || seen[got] {
					t.Errorf("Next = %d, %v after %d; seen before: %v", got, err, last, seen[got])
				}
				last, seen[got] = got, true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
