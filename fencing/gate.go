package fencing

import (
	"errors"
	"fmt"
	"sync"

	"github.com/distmutex/distmutex/backend"
)

// ErrStale says that a later holder has used the resource already.
var ErrStale = errors.New("stale token")

// StaleError is ErrStale with the tokens.
type StaleError struct {
	Token Token // the one that was refused
	Seen  Token // the largest that the resource has seen
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%v: %d came after %d", ErrStale, e.Token, e.Seen)
}

func (e *StaleError) Unwrap() error { return ErrStale }

// Gate refuses stale tokens on behalf of one resource. The tokens of different
// locks do not compare, so a gate serves one key only.
//
// It forgets everything when the process ends, and is for resources that end
// with it. The zero Gate is ready; its methods may be called at the same time.
// A Gate must not be copied after first use.
type Gate struct {
	mu      sync.Mutex
	largest Token
}

// Admit records token, or returns a *StaleError, which is ErrStale, if a larger
// one was admitted before. The same token is admitted any
// number of times. One that is not positive is refused with a
// *backend.InvalidError: its holder is not fenced.
//
// What is written after Admit returns can still be overtaken by a later holder.
// Call Admit in the critical section of the resource's own mutex, or use
// [Gate.Do].
func (g *Gate) Admit(token Token) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.admit(token)
}

// Do admits token and calls write before any other token can be admitted. It
// returns Admit's error, without calling write, or what write returns. A token
// stays admitted when its write fails. Write must not use the gate.
func (g *Gate) Do(token Token, write func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.admit(token); err != nil {
		return err
	}
	return write()
}

func (g *Gate) admit(token Token) error {
	if token <= 0 {
		return &backend.InvalidError{Field: "Token", Reason: fmt.Sprintf("is %d, which fences nothing", token)}
	}
	if token < g.largest {
		return &StaleError{Token: token, Seen: g.largest}
	}
	g.largest = token
	return nil
}
