package memory_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
)

// lease asks for the key "report" for half a minute.
func lease(owner string) backend.Lease {
	return backend.Lease{Key: "report", Owner: owner, TTL: 30 * time.Second, Start: time.Now()}
}

func ExampleNew() {
	b := memory.New(&memory.Options{After: 1000}) // nil will do
	held, err := b.Acquire(context.Background(), lease("anna"))
	fmt.Println(held.Token, err)
	// Output: 1001 <nil>
}

func ExampleBackend_Acquire() {
	ctx, b := context.Background(), memory.New(nil)
	held, err := b.Acquire(ctx, lease("anna"))
	fmt.Println(held.Token, held.TTL, err)

	_, err = b.Acquire(ctx, lease("bert"))
	fmt.Println(err, errors.Is(err, backend.ErrHeld))

	held, err = b.Acquire(ctx, lease("anna")) // the reply was lost, say
	fmt.Println(held.Token, err)
	// Output:
	// 1 30s <nil>
	// acquire "report": held by another true
	// 1 <nil>
}

func ExampleBackend_Renew() {
	ctx, b := context.Background(), memory.New(nil)
	held, _ := b.Acquire(ctx, lease("anna"))
	fmt.Println(b.Renew(ctx, held))
	b.Release(ctx, held)
	fmt.Println(b.Renew(ctx, held))
	// Output:
	// <nil>
	// renew "report": lease lost
}

func ExampleBackend_Release() {
	ctx, b := context.Background(), memory.New(nil)
	held, _ := b.Acquire(ctx, lease("anna"))
	fmt.Println(b.Release(ctx, held))
	fmt.Println(b.Release(ctx, held)) // repeated within the term

	next, _ := b.Acquire(ctx, lease("bert"))
	fmt.Println(next.Token, b.Release(ctx, held))
	// Output:
	// <nil>
	// <nil>
	// 2 release "report": lease lost
}

func ExampleBackend_Wait() {
	ctx, b := context.Background(), memory.New(nil)
	held, _ := b.Acquire(ctx, lease("anna"))
	time.AfterFunc(time.Millisecond, func() { b.Release(ctx, held) })

	next, err := b.Wait(ctx, lease("bert"))
	fmt.Println(next.Token, next.TTL, err)
	// Output: 2 30s <nil>
}
