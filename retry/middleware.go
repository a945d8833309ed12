package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/distmutex/distmutex/backend"
)

// Middleware repeats each Acquire and Release whose outcome is unknown, with
// the same lease, as p paces it. It panics if p is nil.
//
// It does not repeat after an answer that is definite (ErrHeld, ErrLost,
// *backend.InvalidError), after ctx or the term of the lease has ended, or when
// p says stop. The error is then that of the last attempt; it wraps ctx.Err()
// too if ctx has ended.
//
// A Release whose repetition finds the key held by another is ErrLost, although
// the first one may have worked: nobody can tell. Renew is not repeated here:
// who holds a lease knows best when to renew it again.
func Middleware(p Policy) backend.Middleware {
	if p == nil {
		panic("retry: Middleware of a nil Policy")
	}
	return func(b backend.Backend) backend.Backend { return &repeater{b, p} }
}

// repeater leaves Renew as it is.
type repeater struct {
	backend.Backend
	policy Policy
}

func (r *repeater) Unwrap() backend.Backend { return r.Backend }

func (r *repeater) Acquire(ctx context.Context, want backend.Lease) (got backend.Lease, err error) {
	err = r.repeat(ctx, want, func(l backend.Lease) error {
		got, err = r.Backend.Acquire(ctx, l)
		return err
	})
	if err == nil {
		got.Start = want.Start
	}
	return got, err
}

func (r *repeater) Release(ctx context.Context, held backend.Lease) error {
	return r.repeat(ctx, held, func(l backend.Lease) error { return r.Backend.Release(ctx, l) })
}

func (r *repeater) repeat(ctx context.Context, l backend.Lease, call func(backend.Lease) error) error {
	if l.Start.IsZero() {
		// Zero means the moment of the call, and a repetition is the same call.
		l.Start = time.Now()
	}
	var pace backoff.BackOff
	var cause error
	for {
		err := call(l)
		if err == nil || definite(err) {
			return err
		}
		// The end of ctx is no reason: keep the failure that made us repeat.
		if cause == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			cause = err
		}
		if ctx.Err() != nil {
			return ended(ctx, cause)
		}
		if pace == nil {
			pace = r.policy()
		}
		wait := pace.NextBackOff()
		if wait == backoff.Stop || l.Ended(time.Now().Add(wait)) {
			return cause
		}
		if !sleep(ctx, wait) {
			return ended(ctx, cause)
		}
	}
}

// definite says whether repeating a call could only give the same answer.
func definite(err error) bool {
	var invalid *backend.InvalidError
	return errors.Is(err, backend.ErrHeld) || errors.Is(err, backend.ErrLost) || errors.As(err, &invalid)
}

// ended is cause and the end of ctx in one error.
func ended(ctx context.Context, cause error) error {
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w, after: %w", ctx.Err(), cause)
}

// sleep says whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
