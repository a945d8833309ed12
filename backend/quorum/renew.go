package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Renew succeeds when a majority renewed. A node that lost the key, or never
// had it, is then given it anew while the hold is valid.
func (q *Backend) Renew(ctx context.Context, held backend.Lease) error {
	if err := held.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return q.failed("renew", held.Key, err)
	}
	if held.Start.IsZero() {
		held.Start = time.Now()
	}
	p := q.newPoll(ctx, "renew", held.Key)
	forced := q.fewAnswer()
	visit := q.lanes.enter(held.Key, held.Owner)
	for i, n := range q.nodes {
		probe, err := n.admit("renew", held.Key, forced)
		if err != nil {
			p.votes.cast(vote{node: i, err: err})
			continue
		}
		visit.queue(i)
		q.calls.Go(func() {
			defer visit.leave(i)
			visit.turn(i)
			err := p.renew(n, held, visit, forced || probe)
			n.endProbe(probe)
			p.votes.cast(vote{node: i, err: err})
			if errors.Is(err, backend.ErrLost) {
				n.refill(ctx, held, visit, p.votes)
			}
		})
	}
	visit.end()
	err := p.run()
	if err == nil {
		q.grants.keep(held)
	}
	return err
}

// renew is lost, unsent, where a release is on its way or may be. If the poll has
// failed, nobody hears that.
func (p *poll) renew(n *node, held backend.Lease, v *visit, forced bool) error {
	if n.isOver(p.votes, v) {
		return n.wrap("renew", held.Key, backend.ErrLost)
	}
	return n.call(p.ctx, "renew", held.Key, forced, func(ctx context.Context) error { return n.b.Renew(ctx, held) })
}

// isOver says whether nothing but a release of the owner is to be sent to the node:
// the verb has failed, or it was released, as a whole or on this node.
func (n *node) isOver(votes *votes, v *visit) bool {
	return votes.failed() || v.isReleased() || n.q.grants.isShut(v.owner, n.index)
}

// refill gives the key to a node that does not have it, once a majority has
// renewed and while the hold is valid and not released. It keeps the node's
// turn, so that a release comes behind it.
func (n *node) refill(ctx context.Context, held backend.Lease, v *visit, votes *votes) {
	<-votes.over
	if n.isOver(votes, v) || !time.Now().Before(held.Until()) {
		return
	}
	n.setDoubt(held.Owner, true)
	v.letIn(n.index)
	_, err := n.acquire(ctx, held, false)
	if errors.Is(err, backend.ErrHeld) || time.Now().Before(held.Until()) {
		return
	}
	n.q.grants.shut(held.Owner, n.index)
	n.release(ctx, held, false) // it may have come too late to be covered by this renewal
}

// poll counts the answers to a renewal or a release.
type poll struct {
	q     *Backend
	ctx   context.Context
	op    string
	key   string
	votes *votes
	nodes []error
}

func (q *Backend) newPoll(ctx context.Context, op, key string) *poll {
	return &poll{q: q, ctx: ctx, op: op, key: key, votes: newVotes(len(q.nodes)), nodes: make([]error, len(q.nodes))}
}

// run counts until the answer is known, and ends the vote: nil when a majority agreed; ErrLost when so many nodes lost the
// lease that none can; else, when none can, an unknown outcome.
func (p *poll) run() error {
	err := p.count()
	p.votes.close(err == nil)
	return err
}

func (p *poll) count() error {
	if err := p.ctx.Err(); err != nil {
		return p.q.failed(p.op, p.key, err) // be the answers ever so quick
	}
	agreed, lost, open := 0, 0, len(p.nodes)
	for {
		switch {
		case agreed >= p.q.need:
			return nil
		case lost > len(p.nodes)-p.q.need:
			return p.failed(backend.ErrLost)
		case agreed+open < p.q.need && lost+open <= len(p.nodes)-p.q.need:
			return p.failed(nil)
		}
		select {
		case v := <-p.votes.in:
			open--
			p.nodes[v.node] = v.err
			switch {
			case v.err == nil:
				agreed++
			case errors.Is(v.err, backend.ErrLost):
				lost++
			}
		case <-p.ctx.Done():
			return p.q.failed(p.op, p.key, p.ctx.Err())
		}
	}
}

func (p *poll) failed(verdict error) error {
	return &backend.QuorumError{Op: p.op, Key: p.key, Need: p.q.need, Verdict: verdict, Nodes: p.nodes}
}
