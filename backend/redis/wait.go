package redis

import (
	"context"
	"math/rand/v2"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
)

// How long Wait sleeps at most: nobody is told of a term that ends by itself
// with less than the polls below, nor of a plain client's DEL.
const (
	poll      = time.Second            // while wake-ups arrive; up to twice that
	blindPoll = 200 * time.Millisecond // while they don't; up to twice that
	confirm   = 50 * time.Millisecond  // for a subscription to be confirmed before looking
	spread    = 10 * time.Millisecond  // after the end of a term, so that not all come at once
)

// Wait stands in line and returns with a grant: whoever releases the key passes
// it to the one that has waited longest, in the same step. Only a server whose
// wake-ups don't arrive is polled, by all at random times.
//
// With Options.Unordered, on a node of a quorum, and where the client reaches
// several servers, Wait returns with a hint instead, when the key is free, was
// released, or its holder's term has ended, at the latest after two seconds; in the
// queue of a quorum, when it is the turn of want.Ticket.
//
// It costs no goroutine beside the caller's: one connection serves all waiters of
// the Backend.
func (b *Backend) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := b.check(want); err != nil {
		return backend.Lease{}, err
	}
	got, held, err := backend.Lease{Ticket: want.Ticket}, false, error(nil)
	switch {
	case b.ordered:
		got, held, err = b.stand(ctx, want)
	case b.queued(want):
		if held, err = b.queue(ctx, want); answered(err) {
			held, err = b.wait(ctx, want) // the server refuses it: a hint has to do
		}
	default:
		held, err = b.wait(ctx, want)
	}
	switch {
	case err == nil:
		return got, nil
	case held:
		got = backend.Lease{Key: want.Key}
	default:
		got = backend.Lease{}
	}
	return got, b.fail(ctx, "wait", want.Key, err)
}

// wait waits for a hint, and says whether it saw that another holds the key.
func (b *Backend) wait(ctx context.Context, want backend.Lease) (held bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	h, err := b.hubFor(want.Key)
	if err != nil {
		return false, err
	}
	w, err := h.listen(ctx, wakeChannel(want.Key), "")
	if err != nil {
		return false, err
	}
	defer w.leave()
	r, err := b.send(ctx, want, func(ctx context.Context) (reply, error) {
		if b.plain {
			return b.waitPlainly(ctx, want)
		}
		return b.eval(ctx, waitScript, []string{want.Key}, &secret{owner: want.Owner})
	})
	if err != nil || r.status == yes {
		return false, err
	}
	limit := jitter(poll)
	if !w.live() {
		limit = jitter(blindPoll)
	}
	if r.left >= 0 {
		limit = min(limit, r.left+time.Millisecond+rand.N(spread))
	}
	_, err = w.sleep(ctx, limit)
	return true, err
}

func jitter(d time.Duration) time.Duration { return d + rand.N(d) }

// waiter is one call of Wait.
type waiter struct {
	hub   *hub
	topic *topic
	id    uint64
	woken chan struct{}
	given given // what it was passed; under hub.mu

	ticket string // it stands in a queue
	turn   bool   // it was told that it is its turn; under hub.mu
	free   bool   // or that the lock is free; under hub.mu
}

// listen joins a channel, and gives the subscription a moment to be confirmed. A
// release before that wakes nobody, so whoever listens looks after it.
func (h *hub) listen(ctx context.Context, channel, ticket string) (*waiter, error) {
	w, err := h.join(channel, ticket)
	if err != nil || w.live() {
		return w, err
	}
	if _, err := w.sleep(ctx, confirm); err != nil {
		w.leave()
		return nil, err
	}
	return w, nil
}

// wake is called with hub.mu held.
func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// live says whether a release that happens from now on wakes the waiter.
func (w *waiter) live() bool {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return w.topic.live
}

// sleep says whether the waiter was woken within d.
func (w *waiter) sleep(ctx context.Context, d time.Duration) (bool, error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.woken:
		return true, nil
	case <-t.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-w.hub.ctx.Done():
		return false, goredis.ErrClosed
	}
}

func (w *waiter) leave() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	delete(w.topic.waiters, w.id)
	w.topic.idle = false
}
