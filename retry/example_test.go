package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/retry"
)

// A Policy makes a back-off for each series of attempts.
func ExamplePolicy() {
	var p retry.Policy = func() backoff.BackOff {
		return backoff.NewConstantBackOff(time.Second)
	}
	fmt.Println(p().NextBackOff())
	// Output: 1s
}

func ExampleConstant() {
	b := retry.Constant(50 * time.Millisecond)()
	fmt.Println(b.NextBackOff(), b.NextBackOff(), b.NextBackOff())
	// Output: 50ms 50ms 50ms
}

func ExampleExponential() {
	b := retry.Exponential(10*time.Millisecond, 50*time.Millisecond)()
	fmt.Println(b.NextBackOff(), b.NextBackOff(), b.NextBackOff(), b.NextBackOff())
	// Output: 10ms 20ms 40ms 50ms
}

func ExampleFullJitter() {
	b := retry.FullJitter(10*time.Millisecond, 50*time.Millisecond)()
	fmt.Println(b.NextBackOff() <= 10*time.Millisecond)
	fmt.Println(b.NextBackOff() <= 20*time.Millisecond)
	// Output:
	// true
	// true
}

func ExampleDecorrelated() {
	b := retry.Decorrelated(10*time.Millisecond, 50*time.Millisecond)()
	first := b.NextBackOff()
	fmt.Println(first >= 10*time.Millisecond, first <= 30*time.Millisecond)
	// Output: true true
}

func ExampleLimit() {
	b := retry.Limit(retry.Constant(time.Second), 2)()
	fmt.Println(b.NextBackOff(), b.NextBackOff(), b.NextBackOff() == backoff.Stop)
	// Output: 1s 1s true
}

// flaky loses the first reply.
type flaky struct {
	backend.Backend
	calls int
}

func (f *flaky) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	got, err := f.Backend.Acquire(ctx, want)
	if f.calls++; f.calls == 1 {
		return backend.Lease{}, errors.New("connection reset")
	}
	return got, err
}

// The key was ours when the first reply got lost, and the repeat finds it so.
func ExampleMiddleware() {
	store := &flaky{Backend: memory.New(nil)}
	b := backend.Wrap(store, retry.Middleware(retry.FullJitter(time.Millisecond, 20*time.Millisecond)))
	got, err := b.Acquire(context.Background(), backend.Lease{
		Key: "report", Owner: "of one attempt", TTL: 10 * time.Second, Start: time.Now(),
	})
	fmt.Println(got.Token, err, store.calls)
	// Output: 1 <nil> 2
}
