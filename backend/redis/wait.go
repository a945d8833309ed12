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
	wait := b.wait
	switch {
	case b.ordered:
		wait = b.stand
	case b.queued(want):
		wait = b.queue
	}
	got, err := wait(ctx, want)
	if b.queued(want) && answered(err) {
		got, err = b.wait(ctx, want) // the server refuses the queue: a hint has to do
	}
	if err != nil {
		return got, b.fail(ctx, "wait", want.Key, err)
	}
	return got, nil
}

// wait waits for a hint. Beside an error, as those of the line and the queue, it has
// the key if it saw that another holds it.
func (b *Backend) wait(ctx context.Context, want backend.Lease) (seen backend.Lease, err error) {
	if ctx.Err() != nil {
		return seen, ctx.Err()
	}
	h, err := b.hubFor(want.Key)
	if err != nil {
		return seen, err
	}
	w, err := h.listen(ctx, wakeChannel(want.Key), "")
	if err != nil {
		return seen, err
	}
	defer w.leave()
	r, err := b.send(ctx, want, func(ctx context.Context) (reply, error) {
		if b.plain {
			return b.waitPlainly(ctx, want)
		}
		return b.eval(ctx, waitScript, []string{want.Key}, &secret{owner: want.Owner})
	})
	hint := backend.Lease{Ticket: want.Ticket}
	switch {
	case err != nil:
		return seen, err
	case r.status == yes:
		return hint, nil
	}
	limit := jitter(poll)
	if !w.live() {
		limit = jitter(blindPoll)
	}
	if r.left >= 0 {
		limit = min(limit, r.left+time.Millisecond+rand.N(spread))
	}
	if _, err := w.sleep(ctx, limit); err != nil {
		seen.Key = want.Key
		return seen, err
	}
	return hint, nil
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
