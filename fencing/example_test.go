package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
)

// The check and the write are one step: no later holder gets between them.
func ExampleGate_Do() {
	var (
		gate    fencing.Gate
		balance int
	)
	deposit := func(token fencing.Token, amount int) error {
		return gate.Do(token, func() error { balance += amount; return nil })
	}
	fmt.Println(deposit(33, 100))
	fmt.Println(deposit(34, 20))
	fmt.Println(deposit(33, 100)) // the first holder wakes up after its lease
	fmt.Println(balance)
	// Output:
	// <nil>
	// <nil>
	// stale token: 33 came after 34
	// 120
}

func ExampleGate_Admit() {
	var gate fencing.Gate
	fmt.Println(gate.Admit(34))
	fmt.Println(gate.Admit(34))
	fmt.Println(errors.Is(gate.Admit(33), fencing.ErrStale))
	// Output:
	// <nil>
	// <nil>
	// true
}

func ExampleNewContext() {
	ctx := fencing.NewContext(context.Background(), 34)
	fmt.Println(fencing.FromContext(ctx))
	// Output: 34 true
}

// What must not run unfenced asks for a token first.
func ExampleFromContext() {
	write := func(ctx context.Context) error {
		token, ok := fencing.FromContext(ctx)
		if !ok {
			return errors.New("write outside of a lock")
		}
		fmt.Println("write with token", token)
		return nil
	}
	fmt.Println(write(context.Background()))
	fmt.Println(write(fencing.NewContext(context.Background(), 34)))
	// Output:
	// write outside of a lock
	// write with token 34
	// <nil>
}

// unfenced is a backend that has no tokens of its own.
func unfenced() backend.Backend { return bareMemory() }

func ExampleMiddleware() {
	ctx := context.Background()
	b := backend.Wrap(unfenced(), fencing.Middleware(fencing.NewCounter(0)))
	for _, owner := range []string{"anna", "bert"} {
		held, err := b.Acquire(ctx, backend.Lease{Key: "report", Owner: owner, TTL: time.Minute})
		fmt.Println(owner, held.Token, err)
		again, err := b.Acquire(ctx, backend.Lease{Key: "report", Owner: owner, TTL: time.Minute}) // the reply was lost, say
		fmt.Println(owner, again.Token, err)
		b.Release(ctx, held)
	}
	// Output:
	// anna 1 <nil>
	// anna 1 <nil>
	// bert 2 <nil>
	// bert 2 <nil>
}

func ExampleCounter_Next() {
	ctx, c := context.Background(), fencing.NewCounter(1000)
	fmt.Println(c.Next(ctx, "report", 0))
	fmt.Println(c.Next(ctx, "report", 2000))
	fmt.Println(c.Next(ctx, "invoice", 0))
	// Output:
	// 1001 <nil>
	// 2000 <nil>
	// 2001 <nil>
}
