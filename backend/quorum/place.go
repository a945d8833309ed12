package quorum

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/distmutex/distmutex/internal/jitter"
)

// place is what a ticket of a quorum says: how often its caller has waited, and the
// ticket that is shown to the nodes, empty if none is.
//
// What is shown begins with the time at which the caller came, in microseconds in
// decimal, and is unique. A node that keeps a line orders it by that.
type place struct {
	waited int
	shown  string
}

func placeOf(ticket string) place {
	waited, shown, _ := strings.Cut(ticket, " ")
	n, _ := strconv.Atoi(waited) // no number: never waited
	return place{n, shown}
}

func (p place) String() string {
	if p.shown == "" {
		return strconv.Itoa(p.waited)
	}
	return strconv.Itoa(p.waited) + " " + p.shown
}

// Queuer is what a node offers besides Wait and Clock if those who wait there get
// the key in the order of the tickets that they show, and are told of their turn.
// A ticket begins with a time, in microseconds in decimal. Where a majority of the
// nodes queue, waiters of the quorum stand in one line.
//
// It is about order alone: a node that keeps a key for one whose turn it is refuses
// the others, and grants nothing.
type Queuer interface {
	Queues() bool
}

// places are those that Wait took: a Release after it gives the place up, whether
// or not the caller was told its ticket, or shows it.
type places struct {
	mu      sync.Mutex
	byOwner map[string]taken
}

type taken struct {
	ticket string
	ends   *time.Timer // a minute after: nobody calls
}

// put notes the owner's place, in the stead of an earlier one.
func (p *places) put(owner, ticket string) {
	p.pop(owner)
	if ticket == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byOwner == nil {
		p.byOwner = make(map[string]taken)
	}
	p.byOwner[owner] = taken{ticket, time.AfterFunc(time.Minute, func() { p.pop(owner) })}
}

func (p *places) pop(owner string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.byOwner[owner]
	if ok {
		t.ends.Stop()
		delete(p.byOwner, owner)
	}
	return t.ticket
}

// spread is how far those who were woken at once are spread.
func (p place) spread() time.Duration { return spread << min(p.waited, widest) }

// pause keeps the caller from those who were woken with it; in line it is woken alone.
func (p place) pause(ctx context.Context, owner string) {
	if p.waited > 0 && p.shown == "" {
		pause(ctx, jitter.Of(owner, 2*p.waited, p.spread()))
	}
}

// ticket is a new ticket to show, for a caller whose first attempt has this owner, by
// the median of the nodes' clocks; empty, if fewer than a majority queue and have
// told of theirs.
func (q *Backend) ticket(owner string) string {
	var all []time.Duration
	for _, n := range q.nodes {
		if n.clock == nil || n.queuer == nil || !n.queuer.Queues() {
			continue
		}
		if ahead, _, ok := n.clock.Clock(); ok {
			all = append(all, ahead)
		}
	}
	if len(all) < q.need {
		return ""
	}
	slices.Sort(all)
	// Our wall clock may have been set since: what counts is how it went on.
	now := q.born.Round(0).Add(time.Since(q.born)).Add(all[len(all)/2])
	return strconv.FormatInt(now.UnixMicro(), 10) + "-" + strconv.FormatInt(int64(jitter.Of(owner, -1, 1<<62)), 36)
}
