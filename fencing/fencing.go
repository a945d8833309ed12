// Package fencing makes a resource safe from a holder that does not know yet
// that it lost its lock.
//
// No lease can do that alone: a process that is paused between its last check
// and its write wakes up in another's critical section. But every hold has a
// token, larger than all tokens before it. So the holder sends its token with
// each write, and the resource refuses a token smaller than the largest it has
// seen (M. Kleppmann, "How to do distributed locking", 2016).
//
// The refusing belongs to the resource: it keeps the largest token as durably
// as the data, and compares and writes in one atomic step. In SQL:
//
//	UPDATE account SET balance = $1, token = $2 WHERE id = $3 AND token <= $2
//
// where no row updated means that the writer was stale. [Gate] is that rule for
// a resource that lives in one process.
package fencing

import (
	"context"

	"github.com/distmutex/distmutex/backend"
)

// Token orders the holds of one key. Zero means not fenced.
type Token = backend.Token

type contextKey struct{}

// NewContext returns a ctx that carries token to where the resource is used.
func NewContext(ctx context.Context, token Token) context.Context {
	return context.WithValue(ctx, contextKey{}, token)
}

// FromContext returns the token that ctx carries. It says false if there is
// none, or if it is zero and would fence nothing.
func FromContext(ctx context.Context) (Token, bool) {
	token, _ := ctx.Value(contextKey{}).(Token)
	return token, token != 0
}
