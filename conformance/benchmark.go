package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Benchmark measures what a caller waits for, as sub-benchmarks:
//
//   - cycle: Acquire and Release of a key that nobody else wants
//   - parallel: the same by many goroutines, each with a key of its own
//   - renew: Renew by the holder
//   - refusal: Acquire of a key that another holds
//   - hand-over: a key goes from one waiter to the next, if there is a Waiter
//
// It uses New and Peer of the harness.
func Benchmark(b *testing.B, h Harness) {
	b.Run("cycle", func(b *testing.B) {
		c := h.New(b)
		key := benchKey()
		b.ReportAllocs()
		for b.Loop() {
			cycle(b, c, key)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		c := h.New(b)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			key := benchKey()
			for pb.Next() {
				cycle(b, c, key)
			}
		})
	})
	b.Run("renew", func(b *testing.B) { benchRenew(b, h) })
	b.Run("refusal", func(b *testing.B) { benchRefusal(b, h) })
	b.Run("hand-over", func(b *testing.B) { benchHandOver(b, h) })
}

func benchKey() string { return "conformance:benchmark:" + rand.Text() }

func attempt(key string) backend.Lease {
	return backend.Lease{Key: key, Owner: rand.Text(), TTL: long, Start: time.Now()}
}

func cycle(b *testing.B, c backend.Backend, key string) {
	held, err := c.Acquire(b.Context(), attempt(key))
	if err == nil {
		err = c.Release(b.Context(), held)
	}
	if err != nil {
		b.Error(err)
	}
}

func benchRenew(b *testing.B, h Harness) {
	c := h.New(b)
	held, err := c.Acquire(b.Context(), attempt(benchKey()))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		held.Start = time.Now()
		if err := c.Renew(b.Context(), held); err != nil {
			b.Fatal(err)
		}
	}
	if err := c.Release(b.Context(), held); err != nil {
		b.Fatal(err)
	}
}

func benchRefusal(b *testing.B, h Harness) {
	c := h.New(b)
	key := benchKey()
	held, err := c.Acquire(b.Context(), attempt(key))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		got, err := c.Acquire(b.Context(), attempt(key))
		switch {
		case err == nil:
			held = got // the one before ran out
		case !errors.Is(err, backend.ErrHeld):
			b.Fatal(err)
		}
	}
	if err := c.Release(b.Context(), held); err != nil {
		b.Fatal(err)
	}
}

// benchHandOver has two callers pass a key to and fro: an operation is a hold.
func benchHandOver(b *testing.B, h Harness) {
	clients := []backend.Backend{h.New(b)}
	if h.Peer != nil {
		clients = append(clients, h.Peer(b, clients[0]))
	} else {
		clients = append(clients, clients[0])
	}
	if _, ok := backend.As[backend.Waiter](clients[0]); !ok {
		b.Skip("not measured: the backend has no Waiter")
	}
	key := benchKey()
	turns := make(chan struct{})
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for range turns {
				held, err := waitFor(b.Context(), c, key)
				if err == nil {
					err = c.Release(b.Context(), held)
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for b.Loop() {
		turns <- struct{}{}
	}
	close(turns)
	wg.Wait()
}

func waitFor(ctx context.Context, c backend.Backend, key string) (backend.Lease, error) {
	w, _ := backend.As[backend.Waiter](c)
	var ticket string
	for {
		want := attempt(key)
		want.Ticket = ticket
		got, err := w.Wait(ctx, want)
		if err == nil && got.TTL == 0 {
			ticket, want.Ticket, want.Start = got.Ticket, got.Ticket, time.Now()
			got, err = c.Acquire(ctx, want)
		}
		if !errors.Is(err, backend.ErrHeld) {
			return got, err
		}
	}
}
