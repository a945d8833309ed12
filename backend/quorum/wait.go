package quorum

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/internal/jitter"
)

const (
	pollMax = time.Second            // a waiter tries again at least this often
	spread  = 500 * time.Microsecond // the first random pause of one who came too late
	widest  = 5                      // how often that pause doubles
)

// Wait returns when the first node says that it is worth trying, or after a
// random time of up to a second.
//
// Waiters that are woken together can split the nodes among them. So the pause
// between the hint and the return is random, and grows with the caller's place:
// the ticket counts how often it has waited.
func (q *Backend) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := want.Validate(); err != nil {
		return backend.Lease{}, err
	}
	waited, _ := strconv.Atoi(want.Ticket) // no number: never waited
	q.awaitHint(ctx, want, waited)
	if n := min(waited, widest); n > 0 {
		pause(ctx, jitter.Of(want.Owner, 2*waited, spread<<n))
	}
	if err := ctx.Err(); err != nil {
		return backend.Lease{}, q.failed("wait", want.Key, err)
	}
	return backend.Lease{Ticket: strconv.Itoa(waited + 1)}, nil
}

// awaitHint returns when one node's waiter does, or it is time to poll.
func (q *Backend) awaitHint(ctx context.Context, want backend.Lease, waited int) {
	asked, stop := context.WithCancel(ctx)
	hint := make(chan struct{}, len(q.nodes))
	var waits sync.WaitGroup
	now, waiters := time.Now(), 0
	for _, n := range q.nodes {
		w, ok := backend.As[backend.Waiter](n.b)
		if !ok || n.isAside(now) {
			continue
		}
		waiters++
		waits.Go(func() {
			if _, err := w.Wait(asked, want); err == nil {
				hint <- struct{}{}
			}
		})
	}
	poll := time.NewTimer(pollAfter(want.Owner, waited, waiters > 0))
	defer poll.Stop()
	select {
	case <-hint:
	case <-poll.C:
	case <-ctx.Done():
	}
	// The next call for this owner may begin only when these have returned.
	stop()
	waits.Wait()
}

// pollAfter is when to try without a hint: seldom where hints are to be had.
func pollAfter(owner string, waited int, hints bool) time.Duration {
	longest := pollMax
	if !hints {
		longest = min(pollMax, 20*time.Millisecond<<min(waited, widest))
	}
	return longest/2 + jitter.Of(owner, 2*waited+1, longest/2)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
