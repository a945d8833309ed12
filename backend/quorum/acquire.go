package quorum

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Acquire asks all nodes at once. It returns ErrHeld when a majority answered
// and too few of them granted, having given their grants back; and a
// *backend.QuorumError that is not ErrHeld when too few answered.
//
// The token is one that a majority of the configured nodes stands at: any later
// majority shares a node with it, and that node grants a larger one.
func (q *Backend) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := want.Validate(); err != nil {
		return backend.Lease{}, err
	}
	if err := ctx.Err(); err != nil {
		return backend.Lease{}, q.failed("acquire", want.Key, err)
	}
	if want.Start.IsZero() {
		want.Start = time.Now()
	}
	if err := q.differ(ctx); err != nil {
		return backend.Lease{}, q.failed("acquire", want.Key, err)
	}
	ticket := want.Ticket
	want.Ticket = placeOf(ticket).shown
	q.places.pop(want.Owner)
	b := &ballot{
		q: q, ctx: ctx, want: want,
		votes:  newVotes(len(q.nodes)),
		forced: q.fewAnswer(),
		seats:  make([]seat, len(q.nodes)),
	}
	// A repeated call aims at the token that the first one was answered with.
	if t, told := q.grants.token(want.Owner); told {
		b.told = true
		if t >= want.Token {
			b.aiming, b.fixed, b.token = true, true, t
		}
	}
	b.send(want, q.all()...)
	got, err := b.run()
	b.votes.close(err == nil)
	if err == nil {
		got.Ticket = ticket
		q.grants.keep(got)
	}
	return got, err
}

var errReleased = errors.New("its release was asked for")

// ballot counts the votes on one attempt. One goroutine owns it.
type ballot struct {
	q      *Backend
	ctx    context.Context
	want   backend.Lease
	votes  *votes
	forced bool

	seats  []seat
	told   bool          // the owner was told of a grant by an earlier call
	aiming bool          // a token was chosen
	fixed  bool          // it is what the owner was told, and not to be moved
	token  backend.Token // the token to stand at
}

// seat is what is known of one node in this attempt.
type seat struct {
	asked   bool          // a call is under way
	granted bool          // it holds the key for us
	token   backend.Token // the last token it granted or acknowledged
	first   backend.Token // from there to token they were nobody's on this node
	until   time.Time     // the end of the term it granted
	err     error         // why it does not count
}

func (b *ballot) run() (backend.Lease, error) {
	for {
		if b.stands() {
			return b.grant(), nil
		}
		if err := b.defeat(); err != nil {
			return backend.Lease{}, err
		}
		select {
		case v := <-b.votes.in:
			b.count(v)
			b.aim()
		case <-b.ctx.Done():
			return backend.Lease{}, b.q.failed("acquire", b.want.Key, b.ctx.Err())
		}
	}
}

// send asks nodes, each behind what this key still has under way there. One that
// is set aside has failed already.
func (b *ballot) send(l backend.Lease, nodes ...int) {
	visit := b.q.lanes.enter(l.Key, l.Owner)
	defer visit.end()
	for _, i := range nodes {
		n := b.q.nodes[i]
		probe, err := n.admit("acquire", l.Key, b.forced)
		if err != nil {
			b.seats[i] = seat{err: err}
			continue
		}
		if !b.aiming && visit.leaveOut(i, b.q.suspicion()) {
			n.endProbe(probe)
			b.seats[i] = seat{err: n.wrap("acquire", l.Key, errBusy)}
			continue
		}
		b.seats[i].asked = true
		visit.queue(i)
		b.q.calls.Go(func() {
			defer visit.leave(i)
			visit.turn(i)
			n.setDoubt(l.Owner, true)
			got, err := backend.Lease{}, n.wrap("acquire", l.Key, errReleased)
			if n.isOver(b.votes, visit) {
				n.setDoubt(l.Owner, false) // unsent: there is nothing to give back
			} else {
				got, err = n.acquire(b.ctx, l, b.forced || probe)
			}
			n.endProbe(probe)
			b.votes.cast(vote{i, got, err})
		})
	}
}

func (b *ballot) count(v vote) {
	s := &b.seats[v.node]
	s.asked, s.granted, s.err = false, v.err == nil, v.err
	if v.err != nil {
		return
	}
	start := b.want.Start
	if !v.lease.Start.IsZero() && v.lease.Start.Before(start) {
		start = v.lease.Start
	}
	s.token, s.until = v.lease.Token, start.Add(v.lease.TTL)
	s.first = cmp.Or(v.lease.First, v.lease.Token)
}

// aim chooses the token as soon as a majority has granted, and again, larger,
// if the last choice can't be reached any more; nodes below it are raised.
//
// A node above the token never counts as standing at it: under a clock jump its
// grant can be younger than another holder's of the same token.
func (b *ballot) aim() {
	b.weed()
	granted, reach := 0, 0
	var top backend.Token
	for _, s := range b.seats {
		if s.granted {
			granted++
			top = max(top, s.token)
		}
		if s.granted && s.token <= b.token || !s.granted && s.asked {
			reach++
		}
	}
	if granted < b.q.need {
		return
	}
	if !b.aiming || reach < b.q.need && !b.fixed {
		b.aiming, b.token = true, top
	}
	b.raise()
}

// raise brings the nodes that granted less up to the token, and aims again if
// one of them can't be asked.
func (b *ballot) raise() {
	var low []int
	for i, s := range b.seats {
		if s.granted && !s.asked && s.token < b.token {
			low = append(low, i)
		}
	}
	if len(low) == 0 {
		return
	}
	raised := b.want
	raised.Token = b.token
	b.send(raised, low...)
	if slices.ContainsFunc(low, func(i int) bool { return !b.seats[i].asked }) {
		b.aim()
	}
}

// stands says whether a majority of the configured nodes stands at the token.
func (b *ballot) stands() bool {
	at := 0
	for _, s := range b.seats {
		if s.granted && s.token == b.token {
			at++
		}
	}
	return b.aiming && at >= b.q.need
}

// grant is the lease won: it ends when fewer than a majority of the nodes that
// stand at the token still hold the key. A token that another hold has is on one
// of them, as a majority has it, so it lies below what was nobody's on any.
func (b *ballot) grant() backend.Lease {
	got := b.want
	got.First = 0
	var ends []time.Time
	for _, s := range b.seats {
		if s.granted && s.token == b.token {
			ends = append(ends, s.until)
			got.First = max(got.First, s.first)
		}
	}
	slices.SortFunc(ends, func(x, y time.Time) int { return y.Compare(x) })
	got.Token, got.TTL = b.token, ends[b.q.need-1].Sub(b.want.Start)
	return got
}

// defeat is the error of an attempt that can't succeed any more, once it is
// clear whether a majority answered; nil before. A refusal is final, so what
// was granted is given back behind it.
//
// Who was told of a grant is refused only by a majority that is another's: what
// did not answer may still hold the key for him.
func (b *ballot) defeat() error {
	chance, answers, refused, open := 0, 0, 0, 0
	nodes := make([]error, len(b.seats))
	for i, s := range b.seats {
		nodes[i] = s.err
		if s.asked || s.granted && !(b.fixed && s.token > b.token) {
			chance++
		}
		switch {
		case s.granted:
			answers++
		case errors.Is(s.err, backend.ErrHeld):
			answers++
			refused++
		case s.asked:
			open++
		}
	}
	need := b.q.need
	if chance >= need || answers < need && answers+open >= need {
		return nil
	}
	err := &backend.QuorumError{Op: "acquire", Key: b.want.Key, Need: need, Nodes: nodes}
	if refused >= need || answers >= need && !b.told {
		err.Verdict = backend.ErrHeld
		b.giveBack()
	}
	return err
}

// giveBack releases the attempt wherever it was not definitely refused.
func (b *ballot) giveBack() {
	var nodes []int
	for i, s := range b.seats {
		if !errors.Is(s.err, backend.ErrHeld) {
			nodes = append(nodes, i)
		}
	}
	spent := b.want
	spent.Ticket = "" // the place is kept
	b.q.sendRelease(b.ctx, spent, nodes, newVotes(len(nodes)))
}
