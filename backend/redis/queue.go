package redis

import (
	"context"
	"strings"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// turnLife is how long a node of a quorum keeps a lock for the one whose turn it
// is. That is what it costs if it is not heard of any more.
const turnLife = time.Second

// Queues is for package quorum: a node of a guarded quorum that is one server, and
// not Unordered, keeps a queue.
func (b *Backend) Queues() bool { return b.queues }

// queued says whether who waits with this lease stands in a queue, with the ticket
// that the quorum made for all nodes.
func (b *Backend) queued(l backend.Lease) bool { return l.Ticket != "" && b.queues }

// queue waits until it is the turn of the ticket. Whoever releases the lock tells
// the first in the queue, and the lock is kept for it for a moment. A release
// without a script tells all that it is free: then the first one comes.
func (b *Backend) queue(ctx context.Context, want backend.Lease) (seen backend.Lease, err error) {
	w, err := b.hub.listen(ctx, wakeChannel(want.Key), want.Ticket)
	if err != nil {
		return seen, err
	}
	defer w.leave()
	for {
		r, err := b.send(ctx, want, func(ctx context.Context) (reply, error) {
			keys := []string{want.Key, queueKey(want.Key), turnKey(want.Key), tombsKey(want.Key)}
			return b.eval(ctx, queueScript, keys, &secret{owner: want.Owner},
				want.Ticket, wakeChannel(want.Key), turnLife.Milliseconds(), lineLife.Milliseconds())
		})
		switch {
		case err != nil:
			return seen, err
		case r.status == yes:
			return backend.Lease{Ticket: want.Ticket}, nil
		}
		seen.Key = want.Key
		if !w.live() {
			r.place = -1 // polls are all it has
		}
		switch turn, err := w.await(ctx, &r); {
		case err != nil:
			return seen, err
		case turn:
			return backend.Lease{Ticket: want.Ticket}, nil
		}
	}
}

// await says whether it is the waiter's turn; if not, it is time to ask again.
func (w *waiter) await(ctx context.Context, r *reply) (bool, error) {
	for end := time.Now().Add(r.pause()); ; {
		woken, err := w.sleep(ctx, time.Until(end))
		if err != nil || !woken {
			return false, err
		}
		turn, free := w.news()
		if turn || free && r.place == 0 {
			return true, nil
		}
		if !free {
			return false, nil
		}
	}
}

// news is what the waiter was told since the last call.
func (w *waiter) news() (turn, free bool) {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	turn, free = w.turn, w.free
	w.turn, w.free = false, false
	return turn, free
}

// tell wakes whom a message on a lock's channel is for: the ticket whose turn it
// is, or with a question mark the one that has become the first; all, if it names
// nobody. Who stands in no queue is woken by any. It is called with hub.mu held.
func (t *topic) tell(message string) {
	ticket, look := strings.CutPrefix(message, "?")
	for _, w := range t.waiters {
		switch {
		case w.ticket == "":
		case message == "":
			w.free = true
		case w.ticket != ticket:
			continue
		case !look:
			w.turn = true
		}
		w.wake()
	}
}

// yield releases a lease, or gives up a place in the queue, and tells the next.
func (b *Backend) yield(ctx context.Context, held backend.Lease, owner *secret, keep time.Duration) (reply, error) {
	keys := []string{held.Key, tombsKey(held.Key), queueKey(held.Key), turnKey(held.Key)}
	return b.eval(ctx, yieldScript, keys, owner,
		keep.Milliseconds(), wakeChannel(held.Key), held.Ticket, turnLife.Milliseconds())
}
