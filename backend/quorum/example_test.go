package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
)

// Three nodes, of which any two are enough. Real ones are servers that fail
// independently, as redis.NewQuorum makes them.
func Example() {
	ctx := context.Background()
	q, err := quorum.New([]backend.Backend{memory.New(nil), memory.New(nil), memory.New(nil)}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close(ctx)

	held, err := q.Acquire(ctx, backend.Lease{Key: "report", Owner: "a", TTL: 10 * time.Second})
	fmt.Println(held.Token, err)

	_, err = q.Acquire(ctx, backend.Lease{Key: "report", Owner: "b", TTL: 10 * time.Second})
	fmt.Println(errors.Is(err, backend.ErrHeld))

	fmt.Println(q.Renew(ctx, held))
	fmt.Println(q.Release(ctx, held))
	// Output:
	// 1 <nil>
	// true
	// <nil>
	// <nil>
}
