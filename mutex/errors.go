package mutex

import (
	"context"
	"errors"
	"fmt"

	"github.com/distmutex/distmutex/backend"
)

var (
	// ErrHeld says that another holds the lock. It is backend.ErrHeld.
	ErrHeld = backend.ErrHeld

	// ErrLost says that the hold ended before it was unlocked. It is
	// backend.ErrLost.
	ErrLost = backend.ErrLost

	// ErrNotLocked is the answer to an Unlock without a Lock.
	ErrNotLocked = errors.New("not locked")

	// ErrClosed is the answer to a Lock of a closed Session.
	ErrClosed = errors.New("session closed")
)

// Reason says why a hold ended.
type Reason string

const (
	Expired  Reason = "expired"  // no renewal succeeded before validity ended
	Taken    Reason = "taken"    // the backend answered that the lease is not ours any more
	MaxHold  Reason = "max_hold" // it was held for Options.MaxHold
	Closed   Reason = "closed"   // its Session was closed
	Unlocked Reason = "unlocked" // in events only: it was not lost
)

// LostError reports a lost hold. It is ErrLost.
type LostError struct {
	Key    string
	Reason Reason
	Err    error // what the last call of the backend failed with, or nil
}

func (e *LostError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("lost %q: %s", e.Key, e.Reason)
	}
	return fmt.Sprintf("lost %q: %s: %v", e.Key, e.Reason, e.Err)
}

func (e *LostError) Is(target error) bool { return target == ErrLost }
func (e *LostError) Unwrap() error        { return e.Err }

var (
	errLate    = lateError{}
	errUnknown = errors.New("no answer: the outcome is unknown")
)

// lateError reports a grant without validity.
type lateError struct{}

func (lateError) Error() string     { return "granted too late: it took longer than the term" }
func (lateError) ErrorType() string { return "late" }

// named wraps an error that does not say which key it is about.
func named(op, key string, err error) error {
	if err == nil || isInvalid(err) || is[*backend.Error](err) || is[*backend.QuorumError](err) {
		return err
	}
	return &backend.Error{Op: op, Key: key, Err: err}
}

// unanswered is the error of a call that was ended by ours, not the caller's
// context: that our deadline passed is nothing the caller should see as its own.
func unanswered(op, key string, ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &backend.Error{Op: op, Key: key, Err: fmt.Errorf("%w: %w", errUnknown, ctx.Err())}
	}
	return &backend.Error{Op: op, Key: key, Err: fmt.Errorf("%w (%v)", errUnknown, err)}
}

func isInvalid(err error) bool { return is[*backend.InvalidError](err) }

func is[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}
