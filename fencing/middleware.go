package fencing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Middleware gives the holds of a backend tokens from s: a backend that has none
// of its own, or several that guard one resource and share its keys. Tokens of
// the backend itself are replaced. It panics if s is nil.
//
// A token is drawn after the backend has granted the key, and handed out only if
// the lease is still valid when the draw has returned. Else the error is one of
// unknown outcome, as when s fails: the caller repeats the call or releases.
//
// Why tokens increase. If one hold was granted before another was asked for, its
// draw had returned before the other's began, so s gave it the smaller token; and
// s gives none twice. That needs nothing but s. Holds that were asked for side by
// side have their tokens in the order in which they had the key, as far as the
// backend excludes: a draw that returns before its lease's validity ends precedes
// the draw of whoever gets the key after it. Without that look at the clock a
// holder that stalled before its draw would get a larger token than its successor,
// and the resource would refuse the wrong one.
//
// The token of a hold is remembered by its Owner, in this process, until the
// lease is released, lost or no more valid. So a repeated Acquire has the same
// token. One with a larger want.Token raises it to exactly that, by a draw whose
// token nobody gets: s is above it then. What s gave before it does not say, so
// the grant has no First.
// Renew draws for a token that s may not have given, and sends s nothing else.
func Middleware(s Source) backend.Middleware {
	if s == nil {
		panic("fencing: Middleware of a nil Source")
	}
	return func(b backend.Backend) backend.Backend {
		l := &layer{inner: b, source: s}
		if w, ok := backend.As[backend.Waiter](b); ok {
			return &waitingLayer{l, w}
		}
		return l
	}
}

type layer struct {
	inner  backend.Backend
	source Source
	holds  holds
}

// waitingLayer is the layer over a backend that has a Waiter.
type waitingLayer struct {
	*layer
	waiter backend.Waiter
}

func (l *layer) Unwrap() backend.Backend { return l.inner }

func (l *layer) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := want.Validate(); err != nil {
		return backend.Lease{}, err
	}
	want = started(want)
	got, err := l.inner.Acquire(ctx, bare(want))
	if errors.Is(err, backend.ErrHeld) {
		l.holds.forget(want)
	}
	if err != nil {
		return bare(got), err
	}
	return l.grant(ctx, "acquire", want, got)
}

func (l *waitingLayer) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := want.Validate(); err != nil {
		return backend.Lease{}, err
	}
	want = started(want)
	got, err := l.waiter.Wait(ctx, bare(want))
	if err != nil || got.TTL == 0 {
		return bare(got), err
	}
	return l.grant(ctx, "wait", want, got)
}

func (l *layer) Renew(ctx context.Context, held backend.Lease) error {
	if err := held.Validate(); err != nil {
		return err
	}
	held = started(held)
	err := l.inner.Renew(ctx, bare(held))
	if errors.Is(err, backend.ErrLost) {
		l.holds.forget(held)
	}
	if err != nil {
		return err
	}
	if token, _ := l.holds.known(held); held.Token <= token {
		return nil
	}
	// The token is not one that was remembered: of another process or Source, or
	// of a term that had ended here. The key was never another's meanwhile, so
	// it is good if s is above it before the key can be.
	if _, err := l.draw(ctx, held, held.Token); err != nil {
		return fail("renew", held.Key, err)
	}
	if !l.holds.keep(held) {
		return fail("renew", held.Key, errLate)
	}
	return nil
}

// Release sends the token along: to the backend it says only that the caller was
// told of a grant.
func (l *layer) Release(ctx context.Context, held backend.Lease) error {
	if err := held.Validate(); err != nil {
		return err
	}
	l.holds.forget(held)
	return l.inner.Release(ctx, held)
}

// grant gives a lease that was granted just now its token.
func (l *layer) grant(ctx context.Context, op string, want, got backend.Lease) (backend.Lease, error) {
	if got.Start.IsZero() {
		got.Start = want.Start // Wait need not say when it granted
	}
	token, known := l.holds.known(got)
	if !known || token < want.Token {
		drawn, err := l.draw(ctx, got, want.Token)
		if err != nil {
			return backend.Lease{}, fail(op, want.Key, err)
		}
		token = drawn
		if known {
			token = want.Token
		}
	}
	got.Token, got.First = token, 0 // s does not say what it gave before
	if !l.holds.keep(got) {
		return backend.Lease{}, fail(op, want.Key, errLate)
	}
	return got, nil
}

var errLate = errors.New("the lease was not valid any more when its token had been drawn")

// draw asks the Source for a token while l is valid. When ctx or that ends first,
// the call is left behind: a token that it draws then is a gap, whenever it does.
func (l *layer) draw(ctx context.Context, lease backend.Lease, floor Token) (Token, error) {
	within, stop := context.WithDeadline(ctx, lease.Until())
	defer stop()
	var token Token
	drawn := make(chan error, 1)
	go func() {
		t, err := l.source.Next(within, lease.Key, floor)
		if err == nil && (t <= 0 || t < floor || t > backend.MaxToken) {
			err = fmt.Errorf("the source gave %d for a floor of %d", t, floor)
		}
		token = t
		drawn <- err
	}()
	var err error
	select {
	case err = <-drawn:
	case <-within.Done():
		err = within.Err()
	}
	switch {
	case err == nil:
		return token, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case within.Err() != nil:
		return 0, errLate
	}
	return 0, fmt.Errorf("no token was drawn: %w", unknown(err))
}

// unknown hides what a Source's error must not say of the lease or of the
// caller's context.
func unknown(err error) error {
	var invalid *backend.InvalidError
	if errors.As(err, &invalid) {
		return errors.New(err.Error())
	}
	for _, answer := range []error{backend.ErrHeld, backend.ErrLost, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, answer) {
			return errors.New(err.Error())
		}
	}
	return err
}

func fail(op, key string, err error) error {
	return &backend.Error{Op: op, Key: key, Err: err}
}

// started fixes the instant from which validity counts.
func started(l backend.Lease) backend.Lease {
	if l.Start.IsZero() {
		l.Start = time.Now()
	}
	return l
}

// bare is a lease without a token: those of the backend and of the layer's
// caller do not compare.
func bare(l backend.Lease) backend.Lease {
	l.Token, l.First = 0, 0
	return l
}
