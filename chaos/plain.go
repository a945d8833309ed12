package main

import (
	"context"
	"crypto/rand"
	"errors"
	mrand "math/rand/v2"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
)

// plain is Redlock as the Redis page "Distributed locks with Redis" has it: SET
// NX PX on one node after the other, a majority, a short time-out for each, a
// random pause before the next try, and a script that compares and deletes.
// A node that has restarted counts at once, and there are no tokens.
type plain struct {
	nodes []goredis.UniversalClient
	ttl   time.Duration
}

type plainHold struct {
	p          *plain
	key, value string
	until      time.Time
}

var compareAndDelete = goredis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`)

func (p *plain) lock(ctx context.Context, key string) (hold, error) {
	for {
		h := &plainHold{p: p, key: key, value: rand.Text()}
		begun, got := time.Now(), 0
		for _, n := range p.nodes {
			if n.SetArgs(ctx, key, h.value, goredis.SetArgs{Mode: "NX", TTL: p.ttl}).Err() == nil {
				got++
			}
		}
		h.until = begun.Add(p.ttl - backend.Drift(p.ttl))
		if got > len(p.nodes)/2 && time.Now().Before(h.until) {
			return h, nil
		}
		h.unlock(context.WithoutCancel(ctx))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(mrand.Int64N(int64(p.ttl / 10)))):
		}
	}
}

func (p *plain) close(context.Context) error { return nil }

func (h *plainHold) token() int64          { return 0 }
func (h *plainHold) end() time.Time        { return h.until }
func (h *plainHold) lost() <-chan struct{} { return nil }
func (h *plainHold) stands() bool          { return time.Now().Before(h.until) }

func (h *plainHold) unlock(ctx context.Context) error {
	var errs []error
	for _, n := range h.p.nodes {
		errs = append(errs, compareAndDelete.Run(ctx, n, []string{h.key}, h.value).Err())
	}
	return errors.Join(errs...)
}
