package redis_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
)

// opened is a backend on a simulated server, and what ends both.
func opened() (b *redis.Backend, end func()) {
	s := server()
	client := goredis.NewClient(&goredis.Options{Addr: s.Addr()})
	b, err := redis.New(client, nil)
	if err != nil {
		panic(err)
	}
	return b, func() {
		b.Close(context.Background())
		client.Close()
		s.Close()
	}
}

// report asks for the key "report" for ten seconds.
func report(owner string) backend.Lease {
	return backend.Lease{Key: "report", Owner: owner, TTL: 10 * time.Second, Start: time.Now()}
}

// With ErrHeld come what is left of the holder's term and the key's last token.
func ExampleBackend_Acquire() {
	b, end := opened()
	defer end()
	ctx := context.Background()
	held, err := b.Acquire(ctx, report("a"))
	fmt.Println(err)
	seen, err := b.Acquire(ctx, report("b"))
	fmt.Println(errors.Is(err, backend.ErrHeld), seen.TTL > 9*time.Second, seen.Token == held.Token)
	// Output:
	// <nil>
	// true true true
}

func ExampleBackend_Renew() {
	b, end := opened()
	defer end()
	ctx := context.Background()
	held, _ := b.Acquire(ctx, report("a"))
	held.Start = time.Now() // of this renewal
	fmt.Println(b.Renew(ctx, held))
	fmt.Println(errors.Is(b.Renew(ctx, report("b")), backend.ErrLost))
	// Output:
	// <nil>
	// true
}

func ExampleBackend_Release() {
	b, end := opened()
	defer end()
	ctx := context.Background()
	held, _ := b.Acquire(ctx, report("a"))
	fmt.Println(b.Release(ctx, held))
	fmt.Println(b.Release(ctx, held)) // the reply was lost, say
	// Output:
	// <nil>
	// <nil>
}

func ExampleBackend_Close() {
	b, end := opened()
	defer end()
	ctx := context.Background()
	fmt.Println(b.Close(ctx))
	_, err := b.Acquire(ctx, report("a"))
	fmt.Println(errors.Is(err, goredis.ErrClosed))
	// Output:
	// <nil>
	// true
}

func ExampleBackend_Name() {
	client := goredis.NewClient(&goredis.Options{Addr: "r1:6379", Password: "secret"})
	defer client.Close()
	b, err := redis.New(client, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Name())
	// Output: r1:6379
}

// A server's identity is its run_id. A simulation has none, and nor has a
// cluster.
func ExampleBackend_Identity() {
	b, end := opened()
	defer end()
	id, err := b.Identity(context.Background())
	fmt.Printf("%q %v\n", id, err)
	// Output: "" <nil>
}

// The clock of a server is followed where it is a guarded node of a quorum.
func ExampleBackend_Clock() {
	b, end := opened()
	defer end()
	_, _, known := b.Clock()
	fmt.Println(known)
	// Output: false
}

// three is a quorum on simulated servers, and what ends them.
func three() (q *redis.Quorum, end func()) {
	var clients []goredis.UniversalClient
	var ends []func()
	for range 3 {
		s := server()
		client := goredis.NewClient(&goredis.Options{Addr: s.Addr()})
		clients = append(clients, client)
		ends = append(ends, func() { client.Close() }, s.Close)
	}
	q, err := redis.NewQuorum(clients, nil)
	if err != nil {
		panic(err)
	}
	return q, func() {
		for _, end := range ends {
			end()
		}
	}
}

// A server by itself keeps a line of its own; only one of a quorum keeps a queue, in
// the order of the quorum's tickets.
func ExampleBackend_Queues() {
	b, end := opened()
	defer end()
	fmt.Println(b.Queues())
	// Output: false
}

// Close waits for what is still on its way; the clients are their maker's.
func ExampleQuorum_Close() {
	q, end := three()
	defer end()
	ctx := context.Background()
	held, _ := q.Acquire(ctx, report("a"))
	q.Release(ctx, held)
	fmt.Println(q.Close(ctx))
	// Output: <nil>
}

// New servers may be used at once if they are declared so, which takes all of
// them, and that they are empty. (Simulations are not guarded.)
func ExampleQuorum_DeclareNew() {
	q, end := three()
	defer end()
	ctx := context.Background()
	defer q.Close(ctx)
	err := q.DeclareNew(ctx)
	if err != nil && !errors.Is(err, redis.ErrNotNew) { // they were used before: no harm
		fmt.Println(err)
		return
	}
	held, err := q.Acquire(ctx, report("a"))
	fmt.Println(err, q.Release(ctx, held))
	// Output: <nil> <nil>
}
