package sim

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// op is what a message, or a call, is.
type op int

const (
	opAcquire op = iota
	opRenew
	opRelease
	opWait
	opSweep // a release that nobody waits for
	opIdentity
	opDraw // a token from a Source
	opApp  // what the program itself does
	opWake
)

var opNames = [...]string{"acquire", "renew", "release", "wait", "sweep", "identity", "draw", "app", "wake"}

func (o op) String() string { return opNames[o] }

var (
	errRefused = errors.New("connection refused")
	errSilent  = errors.New("no answer")
)

// fate is what befalls one message and its answer.
type fate struct {
	there, back time.Duration
	twice       time.Duration // the request arrives once more, this much earlier or later
	lost, mute  bool          // the request, or its answer, is lost
	refused     bool          // if the node is down, that is said
	rest        time.Duration // a moment of its own
}

// fate draws what befalls a message by what it is: how often this client has
// sent this verb for this owner to this node.
func (d *driver) fate(op op, o owner, nth int) fate {
	p, now := d.w.plan, d.w.now()
	r := rollsOf(p.Seed, 2, d.c.id, d.n.id, int(op), o.client, o.key, o.n, nth)
	f := fate{
		there:   20*time.Microsecond + r.below(p.Latency),
		back:    20*time.Microsecond + r.below(p.Latency),
		refused: r.percent(50),
		rest:    1 + r.below(50*time.Microsecond),
	}
	slow, twice := r.percent(p.Slow), r.percent(p.Twice)
	late, lag := r.below(2*p.TTL), d.w.lag(d.n.id, now)
	lost, mute := r.percent(d.c.plan.Loss), r.percent(d.c.plan.Loss)
	if now >= horizon {
		return f
	}
	f.lost, f.mute = lost, mute
	f.there += r.below(lag)
	f.back += r.below(lag)
	if slow {
		f.there += late
	}
	if twice {
		f.twice = 1 + r.below(p.TTL)
	}
	return f
}

// carry sends one request and waits for its answer. The request goes on when ctx
// has ended, as it does on a real network. It says false if more of it may arrive
// later.
func (d *driver) carry(ctx context.Context, op op, o owner, do func() reply) (r reply, settled bool, err error) {
	nth := d.count(op, o)
	f := d.fate(op, o, nth)
	d.c.rest(f.rest)
	w := d.w
	w.log.sent(d.c.id, d.n.id, op, o, f)
	answers := make(chan reply, 2)
	refused := make(chan struct{}, 1)
	arrive := func(last bool) func() {
		return func() { d.arrive(f, op, o, do, last, answers, refused) }
	}
	if !f.lost {
		w.after(f.there, arrive(f.twice == 0))
	}
	if f.twice != 0 {
		w.after(f.there+f.twice, arrive(true))
	}
	select {
	case r := <-answers:
		return r, f.twice == 0, nil
	case <-refused:
		return reply{}, f.twice == 0, errRefused
	case <-ctx.Done():
		time.Sleep(f.rest)
		return reply{}, false, fmt.Errorf("%w: %w", errSilent, ctx.Err())
	}
}

// arrive delivers a request to the node, now or when it thaws.
func (d *driver) arrive(f fate, op op, o owner, do func() reply, last bool, answers chan<- reply, refused chan<- struct{}) {
	w, now := d.w, d.w.now()
	if w.cut(d.c.id, d.n.id, Requests, now) {
		return
	}
	if thaw := w.frozen(d.n.id, now); thaw > now {
		w.after(thaw-now+f.rest, func() { d.arrive(f, op, o, do, last, answers, refused) })
		return
	}
	d.n.mu.Lock()
	if d.n.down {
		d.n.mu.Unlock()
		if f.refused && last {
			d.reply(f, func() { refused <- struct{}{} })
		}
		return
	}
	r := do()
	d.n.mu.Unlock()
	w.log.arrived(d.c.id, d.n.id, op, o, r)
	if last && !f.mute {
		d.reply(f, func() { answers <- r })
	}
}

// reply delivers an answer, or the news of a release.
func (d *driver) reply(f fate, deliver func()) {
	d.w.after(f.back, func() { d.deliver(f, deliver) })
}

// deliver hands an answer over, now or when the client goes on.
func (d *driver) deliver(f fate, deliver func()) {
	w, now := d.w, d.w.now()
	if w.cut(d.c.id, d.n.id, Replies, now) {
		return
	}
	if wake := w.stopped(d.c.id, now); wake > now {
		w.after(wake-now+f.rest, func() { d.deliver(f, deliver) })
		return
	}
	deliver()
}
