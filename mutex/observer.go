package mutex

import (
	"context"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Observer sees what locks are waited for, held and lost. A Backend, or a layer
// over one, that implements it is found by NewSession through backend.As. So a
// program that passes the wrapped backend has passed the observer too.
//
// It may be called from many goroutines, never with a lock held, and delays
// what it observes.
type Observer interface {
	// Observe is called when e begins. The context it returns, made from ctx, is
	// what the backend is called with; the function, which may be nil, is called
	// with the outcome when e has ended, once. OpAcquired and OpEnded are
	// moments: their context is not used, and their end follows at once.
	Observe(ctx context.Context, e Event) (context.Context, func(error))
}

// Op is what an Event is about.
type Op string

const (
	// OpLock is a whole call of Lock, TryLock, Hold, TryHold, or the first part of
	// Do, from the wait at the session's gate to the answer. The calls of the
	// backend meanwhile have its context.
	OpLock Op = "lock"

	// OpAcquired is the moment a hold begins, within its OpLock, and OpEnded the
	// one in which its end was found out: each once for each hold.
	OpAcquired Op = "acquired"
	OpEnded    Op = "ended"

	// OpRenew is one attempt to renew. Its outcome is nil, ErrLost, or unknown and
	// to be tried again.
	OpRenew Op = "renew"

	// OpUnlock is the release that an Unlock, or a Close, sends and waits for.
	OpUnlock Op = "unlock"
)

// Event is one thing that happens to a lock. It never shows an owner.
type Event struct {
	Op    Op
	Key   string
	Try   bool          // OpLock: it does not wait
	Token backend.Token // of the hold; none in OpLock
	Held  time.Duration // OpEnded: how long the lock was held
	Why   Reason        // OpEnded: Unlocked, or why it was lost

	// Link is the context that Observe returned for the OpLock of this hold;
	// nil in OpLock itself. Renewals come long after it has ended, in a context of their own.
	Link context.Context
}

// observe tells the observer, if there is one.
func (s *Session) observe(ctx context.Context, e Event) (context.Context, func(error)) {
	if s.obs == nil {
		return ctx, nothing
	}
	ctx, end := s.obs.Observe(ctx, e)
	if end == nil {
		end = nothing
	}
	return ctx, end
}

// happened tells the observer of a moment.
func (s *Session) happened(ctx context.Context, e Event, err error) {
	_, end := s.observe(ctx, e)
	end(err)
}

func nothing(error) {}
