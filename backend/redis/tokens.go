package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
)

var (
	//go:embed lua/tokens.lua
	tokensLua    string
	tokensScript = goredis.NewScript(tokensLua)
)

// Tokens draws fencing tokens from counters on a server: a fencing.Source for
// locks that are kept elsewhere and have none. Its method may be called at the
// same time, by any number of processes.
//
// Each key has a counter, and a token is at least the server's clock in
// microseconds. So a counter may expire, a day after the clock has reached it,
// or be lost with the server's data: tokens go on rising unless the clock is set
// back, or a floor was ahead of it and the data is lost. They are exact to 2^53,
// which the clock reaches in the year 2255.
//
// On a server where scripts are forbidden, a draw is a transaction (WATCH).
type Tokens struct {
	client goredis.UniversalClient
	name   string
	plain  atomic.Bool // scripts are forbidden
}

// NewTokens returns Tokens that sends through client, and sends nothing itself.
// Any settings of the client will do: what it sends again leaves a gap. A nil
// client is a *backend.InvalidError.
func NewTokens(client goredis.UniversalClient) (*Tokens, error) {
	if isNil(client) {
		return nil, &backend.InvalidError{Field: "client", Reason: "is nil"}
	}
	return &Tokens{client: client, name: nameOf(client)}, nil
}

// Next returns a token for key, at least floor and larger than every token drawn
// for key before. It takes one round trip, without scripts three and more if
// others draw for key at the same time, and may outlast ctx by the client's own
// time-outs. A key or floor that is none is a *backend.InvalidError; nothing
// is sent then.
func (t *Tokens) Next(ctx context.Context, key string, floor backend.Token) (backend.Token, error) {
	if err := backend.ValidateKey(key); err != nil {
		return 0, err
	}
	if floor < 0 || floor > backend.MaxToken {
		return 0, &backend.InvalidError{Field: "floor", Reason: fmt.Sprintf("is %d, not in 0 to 2^53", floor)}
	}
	err := ctx.Err()
	if err == nil {
		var token backend.Token
		if token, err = t.draw(ctx, key, floor); err == nil {
			return token, nil
		}
	}
	return 0, &backend.Error{Op: "draw a token", Key: key, Node: t.name, Err: cause(ctx, err)}
}

func (t *Tokens) draw(ctx context.Context, key string, floor backend.Token) (backend.Token, error) {
	if t.plain.Load() {
		return t.drawPlainly(ctx, key, floor)
	}
	keys := []string{sourceKey(key)}
	text, err := tokensScript.Run(ctx, t.client, keys, int64(floor), counterLife.Milliseconds()).Text()
	switch {
	case goredis.HasErrorPrefix(err, "NOPERM"), goredis.HasErrorPrefix(err, "unknown command"):
		token, err := t.drawPlainly(ctx, key, floor)
		if err == nil {
			t.plain.Store(true)
		}
		return token, err
	case err != nil:
		return 0, err
	}
	token, err := strconv.ParseUint(text, 10, 64)
	if err != nil || token == 0 || token > uint64(backend.MaxToken) || backend.Token(token) < floor {
		return 0, fmt.Errorf("%w: a token that is none, or below the floor", errAnswer)
	}
	return backend.Token(token), nil
}

// drawPlainly does what the script does, until nobody else has drawn between the
// look at the counter and the transaction that moves it.
func (t *Tokens) drawPlainly(ctx context.Context, key string, floor backend.Token) (token backend.Token, err error) {
	counter := sourceKey(key)
	for {
		err = t.client.Watch(ctx, func(tx *goredis.Tx) error {
			last, err := tx.Get(ctx, counter).Int64()
			switch {
			case errors.Is(err, goredis.Nil):
				last = 0
			case err != nil:
				return fmt.Errorf("the token counter: %w", err)
			case last < 0 || last >= int64(backend.MaxToken):
				return fmt.Errorf("the token counter is %d, not in 0 to 2^53 - 1", last)
			}
			clock, err := tx.Time(ctx).Result()
			if err != nil {
				return err
			}
			now := clock.UnixMicro()
			next := max(last+1, now, int64(floor))
			_, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.Set(ctx, counter, next, time.Duration(next-now)*time.Microsecond+counterLife)
				return nil
			})
			token = backend.Token(next)
			return err
		}, counter)
		switch {
		case err == nil:
			return token, nil
		case !errors.Is(err, goredis.TxFailedErr):
			return 0, err
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
	}
}

func sourceKey(key string) string { return side("source", key) }
