package quorum

import (
	"cmp"
	"context"

	"github.com/distmutex/distmutex/backend"
)

// Release gives the lease up on all nodes, on each behind what is under way
// there, and succeeds when a majority did. A node that can't be told is told
// when it answers again, unless the term has ended by then.
func (q *Backend) Release(ctx context.Context, held backend.Lease) error {
	if err := held.Validate(); err != nil {
		return err
	}
	held.Ticket = cmp.Or(q.places.pop(held.Owner), placeOf(held.Ticket).shown)
	q.grants.forget(held.Owner)
	p := q.newPoll(ctx, "release", held.Key)
	q.sendRelease(ctx, held, q.all(), p.votes)
	return p.run()
}

// sendRelease releases on nodes; votes may be nil.
func (q *Backend) sendRelease(ctx context.Context, l backend.Lease, nodes []int, votes *votes) {
	forced := q.fewAnswer()
	visit := q.lanes.enter(l.Key, l.Owner)
	defer visit.end()
	visit.release()
	for _, i := range nodes {
		n := q.nodes[i]
		if visit.wasLeftOut(i) {
			votes.cast(vote{node: i})
			continue
		}
		probe, err := n.admit("release", l.Key, forced)
		if err != nil {
			n.owe(l)
			votes.cast(vote{node: i, err: err})
			continue
		}
		visit.queue(i)
		q.calls.Go(func() {
			defer visit.leave(i)
			visit.turn(i)
			err := n.release(ctx, l, forced || probe)
			n.endProbe(probe)
			votes.cast(vote{node: i, err: err})
		})
	}
}

func (n *node) release(ctx context.Context, l backend.Lease, forced bool) error {
	err := n.call(ctx, "release", l.Key, forced, func(ctx context.Context) error { return n.b.Release(ctx, l) })
	if isAnswer(err) {
		n.setDoubt(l.Owner, false)
	} else {
		n.owe(l)
	}
	return err
}
