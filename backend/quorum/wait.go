package quorum

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/internal/jitter"
)

const (
	pollMax    = time.Second            // a waiter tries again at least this often
	pollInLine = 2 * time.Second        // and this often if it is told of its turn
	patience   = time.Millisecond       // with the nodes that do not agree yet that it is its turn
	spread     = 500 * time.Microsecond // the first random pause of one who came too late
	widest     = 5                      // how often that pause doubles
)

// Wait returns when a majority of the nodes says that it is the caller's turn, or a
// moment after the first one does, or after a random time of up to two seconds.
//
// Those who wait stand in one line on all nodes that queue: a ticket begins with the
// median of the nodes' clocks, so nodes agree on who is next, and no client's
// clock says so. Where too few queue, all are woken at once, which can split the
// nodes among them: then the pause between the hint and the return is random, and
// grows with how often the caller has waited.
func (q *Backend) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := want.Validate(); err != nil {
		return backend.Lease{}, err
	}
	p := placeOf(want.Ticket)
	if p.shown == "" {
		p.shown = q.ticket(want.Owner)
	}
	want.Ticket = p.shown
	defer q.places.put(want.Owner, p.shown)
	refused := q.awaitHint(ctx, want, p)
	p.pause(ctx, want.Owner)
	if err := ctx.Err(); err != nil {
		seen := backend.Lease{}
		if refused > len(q.nodes)-q.need {
			seen.Key = want.Key
		}
		return seen, q.failed("wait", want.Key, err)
	}
	p.waited++
	hint := backend.Lease{Ticket: p.String()}
	if p.shown != "" {
		hint.Key = want.Key // who stands in line does well to begin there
	}
	return hint, nil
}

// awaitHint returns when one node's waiter does, or it is time to poll. Of those who
// stand in line a majority is waited for, for a moment. It says how many saw until
// ctx ended that another holds the key.
func (q *Backend) awaitHint(ctx context.Context, want backend.Lease, p place) (held int) {
	var seen atomic.Int32
	asked, stop := context.WithCancel(ctx)
	hint := make(chan struct{}, len(q.nodes))
	var waits sync.WaitGroup
	// The next call for this owner may begin only when these have returned.
	defer func() { stop(); waits.Wait(); held = int(seen.Load()) }()
	now, waiters := time.Now(), 0
	for _, n := range q.nodes {
		w, ok := backend.As[backend.Waiter](n.b)
		if !ok || n.isAside(now) {
			continue
		}
		waiters++
		waits.Go(func() {
			switch got, err := w.Wait(asked, want); {
			case err == nil:
				hint <- struct{}{}
			case got.Key != "":
				seen.Add(1)
			}
		})
	}
	poll := time.NewTimer(pollAfter(want.Owner, p, waiters > 0))
	defer poll.Stop()
	for hints := 0; ; {
		select {
		case <-hint:
		case <-poll.C:
			return
		case <-ctx.Done():
			return
		}
		switch hints++; {
		case p.shown == "", hints >= q.need:
			return
		case hints == 1:
			poll.Reset(patience + jitter.Of(want.Owner, 2*p.waited, p.spread()))
		}
	}
}

// pollAfter is when to try without a hint: seldom where hints are to be had.
func pollAfter(owner string, p place, hints bool) time.Duration {
	longest := pollMax
	switch {
	case !hints:
		longest = min(pollMax, 20*time.Millisecond<<min(p.waited, widest))
	case p.shown != "":
		longest = pollInLine
	}
	return longest/2 + jitter.Of(owner, 2*p.waited+1, longest/2)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
