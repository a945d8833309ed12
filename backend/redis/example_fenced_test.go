package redis_test

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/fencing"
)

// fencedSet keeps the token in one hash with the value. Tokens are compared as
// decimal strings: first by length, as Lua's numbers are exact to 2^53 only and
// its conversion to text is not.
var fencedSet = goredis.NewScript(`
local seen, token = redis.call('HGET', KEYS[1], 'token') or '0', ARGV[1]
if #token < #seen or #token == #seen and token < seen then
  return seen
end
redis.call('HSET', KEYS[1], 'token', token, 'value', ARGV[2])
return token`)

// set writes a value unless a later holder of its lock has written one. The
// script compares and writes in one step.
func set(ctx context.Context, c *goredis.Client, key, value string) error {
	token, ok := fencing.FromContext(ctx)
	if !ok {
		return fmt.Errorf("%s: not written outside of its lock", key)
	}
	seen, err := fencedSet.Run(ctx, c, []string{key}, int64(token), value).Int64()
	if err != nil {
		return err
	}
	if seen := fencing.Token(seen); seen != token {
		return fmt.Errorf("%s: %w", key, &fencing.StaleError{Token: token, Seen: seen})
	}
	return nil
}

// A fenced write to Redis.
func Example_fencedWrite() {
	client, stop := dial()
	defer stop()

	first := fencing.NewContext(context.Background(), 33) // as Mutex.Do makes them
	second := fencing.NewContext(context.Background(), 34)
	fmt.Println(set(first, client, "report", "draft"))
	fmt.Println(set(second, client, "report", "report"))
	fmt.Println(set(first, client, "report", "final draft")) // the first holder wakes up after its lease
	fmt.Println(client.HGet(context.Background(), "report", "value").Val())
	// Output:
	// <nil>
	// <nil>
	// report: stale token: 33 came after 34
	// report
}

// Locks are kept in a backend that has no tokens, or none that outlive it.
func ExampleNewTokens() {
	client, stop := dial()
	defer stop()

	tokens, err := redis.NewTokens(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	var last backend.Token
	for range 2 { // each time a new backend, as after a restart
		b := backend.Wrap(memory.New(nil), fencing.Middleware(tokens))
		held, err := b.Acquire(ctx, backend.Lease{Key: "report", Owner: "a random string", TTL: time.Minute})
		fmt.Println(err, held.Token > last)
		last = held.Token
	}
	// Output:
	// <nil> true
	// <nil> true
}

func ExampleTokens_Next() {
	client, stop := dial()
	defer stop()

	tokens, err := redis.NewTokens(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println(tokens.Next(ctx, "report", 5_000_000_000_000_000))
	fmt.Println(tokens.Next(ctx, "report", 0))
	// Output:
	// 5000000000000000 <nil>
	// 5000000000000001 <nil>
}
