// Package backend is what a lock server looks like to distmutex: one noun and
// three verbs. A lease is acquired, renewed and released; ErrHeld and ErrLost
// are definite answers, and any other error means that the outcome is unknown.
//
// This page is the whole contract. To write a backend, implement [Backend],
// begin each verb with [Lease.Validate], and run package conformance on it. To
// layer something over backends, write a [Middleware].
package backend

import (
	"context"
	"time"
)

// Token orders the holds of one key: if one hold was granted before another was
// asked for, its token is smaller, and no two holds share one. Gaps are normal.
// Zero means not fenced; the largest is MaxToken.
//
// A resource that refuses a token smaller than the largest it has seen is safe
// from a holder that was paused past its lease (M. Kleppmann, "How to do
// distributed locking", 2016).
type Token int64

// Lease is one attempt to hold a key, and the hold that comes of it.
type Lease struct {
	// Key names what is locked: 1 to MaxKey bytes without NUL.
	Key string

	// Owner is unique to one attempt, never used for another, and stays with
	// one Backend. It makes Acquire repeatable and a release harmless to
	// everyone else. Whoever knows it can release the lease, so it stays out of
	// logs, spans and errors.
	Owner string

	// TTL is the term: asked for, and from Acquire and Wait the term really
	// granted, which may be shorter. A server may free the key later than at
	// its end, never earlier. Whole milliseconds, MinTTL to MaxTTL.
	TTL time.Duration

	// Token is the grant's token. In a call of Acquire it is a floor: the
	// grant is at least this, whether it is new or the owner's already.
	Token Token

	// First is an answer of Acquire: the tokens from First to Token were no
	// hold's before, and belong to this lease. It is for a holder that raises
	// its token and wants those below it too: that the key was its own in
	// between is not said by its validity alone, since a key can be deleted by
	// hand. Zero means Token alone.
	First Token

	// Start is the local instant from which the grant's TTL counts. Whoever
	// makes an attempt sets it just before the attempt's first message, once:
	// repeating the call does not move it, so neither does validity; only for
	// the Acquire after a hint from Wait is it set anew. It reads the wall
	// clock too, as the hint from which time-based tokens are drawn.
	// Zero means the moment of the call. In a call of Renew, Start is when
	// this renewal began; in a call of Release, when the last one that
	// succeeded did.
	Start time.Time

	// Ticket is the place in line of one caller over all of its attempts. Only
	// the backend gives it a meaning. Empty: no place yet, or none wanted.
	Ticket string
}

// Backend grants leases. Its methods may be called at the same time for any
// leases, but for one Owner the next call begins when the last has returned.
//
// Each method returns at once when ctx ends, with an error that wraps
// ctx.Err(), whatever the network does; its outcome is then unknown. What is
// still on its way takes effect before any later call for the same Owner, or
// never.
//
// Sending the same call twice (a lost reply, a client's own retry) has the
// effect and the answer of sending it once.
type Backend interface {
	// Acquire makes one attempt and never waits for a holder. It returns want
	// with the TTL and the Token of the grant.
	//
	// A key whose holder is want.Owner counts as granted: its term starts anew,
	// is never shortened, and its token moves only to reach a larger
	// want.Token, from First on. A floor that can't be reached is an
	// *InvalidError, and nothing is granted.
	//
	// ErrHeld is definite: another holds the key, nothing of want.Owner stays
	// behind but the place in line of want.Ticket, and the owner is spent: while
	// something of it is on its way and has to be undone, every Acquire with it is
	// ErrHeld and every Renew ErrLost.
	// After any other error the caller repeats the same call or calls Release.
	// Once Release was called for an Owner, nothing acquires with it again.
	Acquire(ctx context.Context, want Lease) (Lease, error)

	// Renew starts the term of a held lease anew, counted from before the call,
	// and asserts its token again, so that later grants stay above it. It
	// grants all of held.TTL, whatever the term was before, or fails.
	//
	// ErrLost is definite: the lease is not this owner's any more. A key that
	// has gone is never created again.
	Renew(ctx context.Context, held Lease) error

	// Release gives a lease up, atomically and only while it is this owner's.
	// It is also legal for a lease that was asked for and never granted (its
	// Token is zero): whatever may have been granted is undone, and any place
	// in line is given up.
	//
	// A key that is free before the end of held's term is nil: this release was
	// repeated. A key that is free after it, or another's, is ErrLost, unless
	// the Token is zero: then there was nothing to lose. A repeat of Release
	// that finds another's grant is ErrLost too; nobody can tell them apart.
	Release(ctx context.Context, held Lease) error
}

// Waiter is what a Backend may offer besides: waiting without polling.
type Waiter interface {
	// Wait returns when an Acquire of want has a chance, perhaps for no reason
	// at all: a hint, on which neither correctness nor progress depends. So
	// where the news may get lost, it also returns within a bound of its own
	// choosing.
	//
	// If the lease returned has a TTL, it is granted, as by Acquire; its Start,
	// if set, is the moment of the grant and may be later than want's. Else
	// its Ticket is the caller's place in line, for its next calls; the
	// Acquire that follows has the same Owner.
	//
	// A hint may have the Key, if its caller stood in a line: after one, as after a
	// grant, who was refused before does well to begin its next attempts with Wait.
	// The lease beside an error may have the Key if another was seen to hold it.
	//
	// A caller that gives up, after an error too, owes a Release of want.
	Wait(ctx context.Context, want Lease) (Lease, error)
}

// Middleware is a layer over a Backend. The Backend it returns has a method
// Unwrap() Backend, by which As finds what is below.
//
// As also finds an inner Waiter, whose grants then pass the layer by. So one
// that changes keys, owners or tokens offers Wait itself.
type Middleware func(Backend) Backend

// Wrap puts layers over b; the first is outermost.
func Wrap(b Backend, ms ...Middleware) Backend {
	for i := len(ms) - 1; i >= 0; i-- {
		b = ms[i](b)
	}
	return b
}

// As finds the outermost T among b and what it wraps.
func As[T any](b Backend) (T, bool) {
	for b != nil {
		if t, ok := b.(T); ok {
			return t, true
		}
		w, ok := b.(interface{ Unwrap() Backend })
		if !ok {
			break
		}
		b = w.Unwrap()
	}
	var none T
	return none, false
}
