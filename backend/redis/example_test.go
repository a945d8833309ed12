package redis_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/fencing"
)

// server is a simulation, so that the examples run anywhere.
func server() *miniredis.Miniredis {
	s := miniredis.NewMiniRedis()
	if err := s.Start(); err != nil {
		panic(err)
	}
	return s
}

// dial returns a client of a server of its own.
func dial() (client *goredis.Client, stop func()) {
	s := server()
	client = goredis.NewClient(&goredis.Options{Addr: s.Addr()})
	return client, func() {
		client.Close()
		s.Close()
	}
}

// Any go-redis client will do. Programs pass the Backend to package mutex; the
// verbs below it are for those who build something else.
func ExampleNew() {
	client, stop := dial()
	defer stop()

	ctx := context.Background()
	b, err := redis.New(client, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close(ctx)

	first := backend.Lease{Key: "orders/42", Owner: "a random string", TTL: 10 * time.Second, Start: time.Now()}
	held, err := b.Acquire(ctx, first)
	fmt.Println(err, held.Token > 0)

	second := backend.Lease{Key: "orders/42", Owner: "another one", TTL: 10 * time.Second, Start: time.Now()}
	_, err = b.Acquire(ctx, second)
	fmt.Println(errors.Is(err, backend.ErrHeld))

	fmt.Println(b.Renew(ctx, held))
	fmt.Println(b.Release(ctx, held))
	// Output:
	// <nil> true
	// true
	// <nil>
	// <nil>
}

// Where scripts are forbidden: the lock alone, as on the Redis page, and tokens
// from elsewhere, here from a server on which transactions do.
func ExampleNew_plain() {
	client, stop := dial()
	defer stop()
	ctx := context.Background()
	plain, err := redis.New(client, &redis.Options{Plain: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer plain.Close(ctx)
	tokens, err := redis.NewTokens(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	b := backend.Wrap(plain, fencing.Middleware(tokens))

	held, err := b.Acquire(ctx, backend.Lease{Key: "orders/42", Owner: "a random string", TTL: 10 * time.Second, Start: time.Now()})
	fmt.Println(err, held.Token > 0)
	fmt.Println(client.Get(ctx, "orders/42").Val())
	fmt.Println(b.Release(ctx, held))
	// Output:
	// <nil> true
	// a random string
	// <nil>
}

func ExampleOpen() {
	s := server()
	defer s.Close()

	ctx := context.Background()
	b, err := redis.Open(ctx, &redis.Options{MaxTTL: time.Minute}, "redis://"+s.Addr()+"/0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close(ctx)

	held, err := b.Acquire(ctx, backend.Lease{Key: "k", Owner: "a random string", TTL: time.Minute, Start: time.Now()})
	fmt.Println(err, b.Release(ctx, held))

	_, err = redis.Open(ctx, nil, "redis://:secret@host:port")
	fmt.Println(err)
	// Output:
	// <nil> <nil>
	// invalid urls[0]: it is not a URL of a server (special characters of a password are written %XX)
}

func ExampleNewQuorum() {
	var clients []goredis.UniversalClient
	for range 3 {
		client, stop := dial()
		defer stop()
		clients = append(clients, client)
	}
	ctx := context.Background()
	q, err := redis.NewQuorum(clients, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close(ctx)

	held, err := q.Acquire(ctx, backend.Lease{Key: "k", Owner: "a random string", TTL: 10 * time.Second, Start: time.Now()})
	fmt.Println(err, q.Release(ctx, held))
	// Output: <nil> <nil>
}

// Wait is a hint: whoever is woken still has to acquire.
func ExampleBackend_Wait() {
	client, stop := dial()
	defer stop()

	ctx := context.Background()
	b, err := redis.New(client, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close(ctx)
	held, err := b.Acquire(ctx, backend.Lease{Key: "k", Owner: "a random string", TTL: 10 * time.Second, Start: time.Now()})
	if err != nil {
		fmt.Println(err)
		return
	}
	go b.Release(ctx, held)

	for i := 1; ; i++ {
		next := backend.Lease{Key: "k", Owner: fmt.Sprint("a new one for each attempt: ", i), TTL: 10 * time.Second, Start: time.Now()}
		if _, err := b.Wait(ctx, next); err != nil {
			fmt.Println(err)
			return
		}
		got, err := b.Acquire(ctx, next)
		if !errors.Is(err, backend.ErrHeld) {
			fmt.Println(err, got.Token > held.Token)
			return
		}
	}
	// Output: <nil> true
}
