package fencing

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/distmutex/distmutex/backend"
)

// Source gives out tokens, for [Middleware]. Its method may be called at the
// same time, for any keys, by all processes that contend for them.
type Source interface {
	// Next returns a token for key, at most backend.MaxToken. It is at least
	// floor and larger than every token given for the key before: than that of
	// every call that returned before this one began, and no two calls get the
	// same. Gaps are normal, so a call that is sent again or whose answer is
	// lost does no harm.
	//
	// Next should return soon after ctx has ended. Whoever can't wait for it
	// leaves it behind.
	Next(ctx context.Context, key string, floor Token) (Token, error)
}

// Counter is a Source in memory, for backends and resources that end with the
// process. One number serves all keys, so that none leaves anything behind. The
// zero Counter gives 1 first.
type Counter struct{ last atomic.Int64 }

// NewCounter returns a Counter all of whose tokens exceed after. Where the
// resource outlives the process, time.Now().UnixMicro() keeps them rising over
// a restart.
func NewCounter(after Token) *Counter {
	c := new(Counter)
	c.last.Store(max(0, int64(after)))
	return c
}

var errSpent = errors.New("no token is left")

// Next gives the next number, or floor if that is larger. A floor that is no
// token is a *backend.InvalidError.
func (c *Counter) Next(ctx context.Context, _ string, floor Token) (Token, error) {
	if floor < 0 || floor > backend.MaxToken {
		return 0, &backend.InvalidError{Field: "floor", Reason: fmt.Sprintf("is %d, not in 0 to 2^53", floor)}
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	for {
		last := c.last.Load()
		if last >= int64(backend.MaxToken) {
			return 0, errSpent
		}
		next := max(last+1, int64(floor))
		if c.last.CompareAndSwap(last, next) {
			return Token(next), nil
		}
	}
}
