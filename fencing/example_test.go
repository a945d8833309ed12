package fencing_test

import (
	"context"
	"errors"
	"fmt"

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
