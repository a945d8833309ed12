package fencing_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/retry"
)

// tokenless is a backend without tokens, and without a Waiter.
type tokenless struct{ backend.Backend }

func (b tokenless) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	want.Token = 0
	got, err := b.Backend.Acquire(ctx, want)
	got.Token = 0
	return got, err
}

// tokenlessWaiter is one with a Waiter.
type tokenlessWaiter struct {
	tokenless
	waiter backend.Waiter
}

func (b tokenlessWaiter) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	want.Token = 0
	got, err := b.waiter.Wait(ctx, want)
	got.Token = 0
	return got, err
}

func bareMemory() backend.Backend { return tokenless{memory.New(nil)} }

func bareWaiter() backend.Backend {
	m := memory.New(nil)
	return tokenlessWaiter{tokenless{m}, m}
}

func TestConformance(t *testing.T) {
	backends := map[string]func() backend.Backend{
		"tokenless":        bareMemory,
		"tokenless waiter": bareWaiter,
		"fenced already":   func() backend.Backend { return memory.New(nil) },
	}
	layers := map[string]func(fence backend.Middleware) []backend.Middleware{
		"alone":         func(fence backend.Middleware) []backend.Middleware { return []backend.Middleware{fence} },
		"retry outside": func(fence backend.Middleware) []backend.Middleware { return []backend.Middleware{patient(), fence} },
		"retry inside":  func(fence backend.Middleware) []backend.Middleware { return []backend.Middleware{fence, patient()} },
	}
	for over, makeBackend := range backends {
		for how, stack := range layers {
			t.Run(over+"/"+how, func(t *testing.T) {
				conformance.Run(t, conformance.Harness{
					New: func(testing.TB) backend.Backend {
						return backend.Wrap(makeBackend(), stack(fencing.Middleware(fencing.NewCounter(0)))...)
					},
					Around: synctest.Test,
				})
			})
		}
	}
}

// Two processes over one store, with a Source that takes its time.
func TestConformanceOfTwoProcesses(t *testing.T) {
	type client struct {
		backend.Backend
		store  backend.Backend
		source fencing.Source
	}
	open := func(store backend.Backend, s fencing.Source) backend.Backend {
		return &client{fencing.Middleware(s)(store), store, s}
	}
	conformance.Run(t, conformance.Harness{
		New: func(testing.TB) backend.Backend {
			return open(bareMemory(), slow{fencing.NewCounter(0), time.Millisecond})
		},
		Peer: func(_ testing.TB, b backend.Backend) backend.Backend {
			c := b.(*client)
			return open(c.store, c.source)
		},
		Around: synctest.Test,
	})
}

func patient() backend.Middleware { return retry.Middleware(retry.Constant(time.Millisecond)) }

// slow takes a while before and after it draws.
type slow struct {
	fencing.Source
	pause time.Duration
}

func (s slow) Next(ctx context.Context, key string, floor fencing.Token) (fencing.Token, error) {
	time.Sleep(s.pause)
	defer time.Sleep(s.pause)
	return s.Source.Next(ctx, key, floor)
}
