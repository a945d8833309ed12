package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
)

// acquirePlainly is one attempt without scripts, in one round trip; in two if the
// key is this owner's already, as after a lost reply.
func (b *Backend) acquirePlainly(ctx context.Context, want backend.Lease, owner *secret) (reply, error) {
	if want.Token > 0 {
		return reply{}, &backend.InvalidError{Field: "Token", Reason: "is not zero, and a plain backend gives no tokens"}
	}
	pipe := b.client.Pipeline()
	set := pipe.Do(ctx, "set", want.Key, owner, "NX", "PX", want.TTL.Milliseconds())
	seen := lookAt(ctx, pipe, want.Key)
	settle(pipe.Exec(ctx)) // each has its own error
	err := wasSet(set)
	switch {
	case err == nil:
		return reply{status: yes}, nil
	case !errors.Is(err, goredis.Nil):
		return reply{}, err
	}
	holder, left, err := seen()
	switch {
	case err != nil:
		return reply{}, err
	case holder != want.Owner:
		return reply{status: gone, left: left}, nil
	}
	// What is left may be less than a term, or nothing by now. Only a renewal can
	// tell, and it is not to shorten what is left.
	want.TTL = max(want.TTL, min(left, b.maxTTL))
	return b.renew(ctx, want)
}

// wasSet is nil if a SET was carried out, and goredis.Nil if its condition did not
// hold.
func wasSet(set *goredis.Cmd) error {
	if set.Err() == nil && set.Val() != "OK" {
		return fmt.Errorf("%w: %T to SET", errAnswer, set.Val())
	}
	return set.Err()
}

// waitPlainly is what the wait script says.
func (b *Backend) waitPlainly(ctx context.Context, want backend.Lease) (reply, error) {
	pipe := b.client.Pipeline()
	seen := lookAt(ctx, pipe, want.Key)
	settle(pipe.Exec(ctx)) // each has its own error
	holder, left, err := seen()
	if err != nil || holder != "" && holder != want.Owner {
		return reply{status: gone, left: left}, err
	}
	return reply{status: yes}, nil
}

// lookAt reads who holds a key, and how long before that: of a holder that was
// another meanwhile, less would be left than it says. An empty holder is none; a
// negative rest is no end.
func lookAt(ctx context.Context, pipe goredis.Pipeliner, key string) func() (holder string, left time.Duration, err error) {
	pttl := pipe.PTTL(ctx, key)
	get := getHolder(ctx, key)
	_ = pipe.Process(ctx, get)
	return func() (string, time.Duration, error) {
		holder, err := get.Result()
		if errors.Is(err, goredis.Nil) {
			return "", 0, nil
		}
		return holder, pttl.Val(), errors.Join(err, pttl.Err())
	}
}

// holder is a GET of a lock. Hooks that write down what commands answer don't see
// whose it is.
type holder struct{ *goredis.StringCmd }

func getHolder(ctx context.Context, key string) holder {
	return holder{goredis.NewStringCmd(ctx, "get", key)}
}

func (h holder) String() string {
	if h.Err() != nil {
		return h.StringCmd.String()
	}
	return "get <key>: <owner>"
}

// renewPlainly and deletePlainly are for servers without native commands.
func (b *Backend) renewPlainly(ctx context.Context, held backend.Lease) (reply, error) {
	return b.ifOwned(ctx, held, "pexpire", held.Key, held.TTL.Milliseconds())
}

func (b *Backend) deletePlainly(ctx context.Context, held backend.Lease) (reply, error) {
	r, err := b.ifOwned(ctx, held, "del", held.Key)
	if r.status == yes {
		b.client.Publish(ctx, wakeChannel(held.Key), "") // a hint, which a user may be forbidden to send
	}
	return r, err
}

var errRestless = errors.New("the key changed each time it was looked at")

// ifOwned runs a command that answers 1 if it did something, on a server where
// the key is the owner's: the server itself refuses a transaction if the key was
// changed, or has ended, since it was looked at. A transaction has one connection
// and fails with it, so what was looked at is what is watched.
func (b *Backend) ifOwned(ctx context.Context, held backend.Lease, command ...any) (r reply, err error) {
	for range 4 {
		err = b.client.Watch(ctx, func(tx *goredis.Tx) error {
			get := getHolder(ctx, held.Key)
			_ = tx.Process(ctx, get)
			holder, err := get.Result()
			switch {
			case errors.Is(err, goredis.Nil):
				r = reply{status: gone}
				return nil
			case err != nil:
				return err
			case holder != held.Owner:
				r = reply{status: otherwise}
				return nil
			}
			var did *goredis.Cmd
			_, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				did = p.Do(ctx, command...)
				return nil
			})
			if err == nil && did.Val() == int64(1) {
				r = reply{status: yes}
			}
			return err
		}, held.Key)
		if !errors.Is(err, goredis.TxFailedErr) {
			return r, err
		}
	}
	return reply{}, errRestless
}
