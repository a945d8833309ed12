package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
)

func ExampleNew() {
	_, err := quorum.New(nil, nil)
	fmt.Println(err)
	node := memory.New(nil)
	_, err = quorum.New([]backend.Backend{node, memory.New(nil), node}, nil)
	fmt.Println(err)
	// Output:
	// invalid nodes: it has no node
	// invalid nodes: it has one node twice, at 0 and 2
}

// three is a quorum of three nodes.
func three() *quorum.Backend {
	q, err := quorum.New([]backend.Backend{memory.New(nil), memory.New(nil), memory.New(nil)}, nil)
	if err != nil {
		panic(err)
	}
	return q
}

// report asks for the key "report" for ten seconds.
func report(owner string) backend.Lease {
	return backend.Lease{Key: "report", Owner: owner, TTL: 10 * time.Second, Start: time.Now()}
}

func ExampleBackend_Acquire() {
	ctx, q := context.Background(), three()
	defer q.Close(ctx)
	held, err := q.Acquire(ctx, report("a"))
	fmt.Println(held.Token, err)
	_, err = q.Acquire(ctx, report("b"))
	fmt.Println(errors.Is(err, backend.ErrHeld))
	// Output:
	// 1 <nil>
	// true
}

func ExampleBackend_Renew() {
	ctx, q := context.Background(), three()
	defer q.Close(ctx)
	held, _ := q.Acquire(ctx, report("a"))
	held.Start = time.Now() // of this renewal
	fmt.Println(q.Renew(ctx, held))
	fmt.Println(errors.Is(q.Renew(ctx, report("b")), backend.ErrLost))
	// Output:
	// <nil>
	// true
}

func ExampleBackend_Release() {
	ctx, q := context.Background(), three()
	defer q.Close(ctx)
	held, _ := q.Acquire(ctx, report("a"))
	fmt.Println(q.Release(ctx, held))
	fmt.Println(q.Release(ctx, held)) // the reply was lost, say
	// Output:
	// <nil>
	// <nil>
}

// Wait is a hint: whoever is woken still has to acquire, with the same owner and
// the ticket that came with the hint.
func ExampleBackend_Wait() {
	ctx, q := context.Background(), three()
	defer q.Close(ctx)
	held, _ := q.Acquire(ctx, report("a"))
	go q.Release(ctx, held)

	ticket := ""
	for i := 1; ; i++ {
		want := report(fmt.Sprint("a new one for each attempt: ", i))
		want.Ticket = ticket
		hint, err := q.Wait(ctx, want)
		if err != nil {
			fmt.Println(err)
			return
		}
		ticket, want.Ticket, want.Start = hint.Ticket, hint.Ticket, time.Now()
		got, err := q.Acquire(ctx, want)
		if !errors.Is(err, backend.ErrHeld) {
			fmt.Println(err, got.Token > held.Token)
			return
		}
	}
	// Output: <nil> true
}

// Close waits for what is still under way on nodes that nobody waited for.
func ExampleBackend_Close() {
	ctx, q := context.Background(), three()
	held, _ := q.Acquire(ctx, report("a"))
	q.Release(ctx, held)
	fmt.Println(q.Close(ctx))
	// Output: <nil>
}

// A node that restarted is well and does not count yet.
func ExampleUncountedError() {
	err := error(&quorum.UncountedError{Reason: quorum.Recovering, Left: 12 * time.Second})
	fmt.Println(err)
	var uncounted *quorum.UncountedError
	fmt.Println(errors.As(err, &uncounted), uncounted.ErrorType())
	// Output:
	// does not count for another 12s: it may have forgotten locks
	// true recovering
}
