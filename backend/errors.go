package backend

import (
	"errors"
	"fmt"
)

// The two definite answers.
var (
	ErrHeld = errors.New("held by another")
	ErrLost = errors.New("lease lost")
)

// InvalidError reports input that was refused at the door: nothing was sent.
type InvalidError struct {
	Field  string // the field or argument
	Reason string // what is wrong with it, as the rest of a sentence
}

func (e *InvalidError) Error() string { return "invalid " + e.Field + ": it " + e.Reason }

// Error is how a backend reports that a verb did not succeed. It never holds an
// owner.
type Error struct {
	Op   string // acquire, renew, release or wait
	Key  string
	Node string // the server; empty where there is only one
	Err  error  // ErrHeld, ErrLost or the cause
}

func (e *Error) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("%s %q: %v", e.Op, e.Key, e.Err)
	}
	return fmt.Sprintf("%s %q on %s: %v", e.Op, e.Key, e.Node, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }
