package sim

import (
	"context"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// waiter is a driver whose node tells of releases.
type waiter struct{ backend.Backend }

func (w waiter) Unwrap() backend.Backend { return w.Backend }

// Wait returns when the lock is free or was released, or its term has ended, and
// after a while in any case; with a ticket, when it is its turn.
func (w waiter) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	d, _ := backend.As[*driver](w.Backend)
	o := d.c.owner(want)
	woken := make(chan news, 16)
	l := d.listen(o, want.Ticket, woken)
	defer d.n.leave(l)
	for i := 0; ; i++ {
		r, _, err := d.carry(ctx, opWait, o, func() reply { return d.n.look(o, want.Ticket) })
		if err == nil && r.status == no {
			var turn bool
			turn, err = d.await(ctx, o, i, r, want.Ticket, woken)
			if err == nil && !turn {
				continue
			}
		}
		if err != nil {
			return backend.Lease{}, d.fail(opWait, want, err)
		}
		return backend.Lease{}, nil
	}
}

// look says whether it is worth trying.
func (n *node) look(o owner, ticket string) reply {
	if ticket != "" {
		return n.wait(o, ticket)
	}
	now, l := n.clock(), n.lock(o.key)
	if l.owner == none || l.owner == o {
		return reply{status: yes, clock: now}
	}
	return reply{status: no, clock: now, left: l.ends - now}
}

// await says whether it is the caller's turn, or is time to look again.
func (d *driver) await(ctx context.Context, o owner, nth int, r reply, ticket string, woken <-chan news) (bool, error) {
	rolls := rollsOf(d.w.plan.Seed, 3, d.c.id, d.n.id, o.key, o.n, nth)
	poll := time.NewTimer(min(rolls.between(200*ms, 400*ms), r.left+ms+time.Duration(r.place)*10*ms+rolls.below(10*ms)))
	defer poll.Stop()
	for {
		select {
		case x := <-woken:
			switch {
			case ticket == "", x.ticket == ticket && !x.look, x == news{} && r.place == 0:
				return true, nil
			case x.look:
				return false, nil
			}
		case <-poll.C:
			return ticket == "", nil
		case <-ctx.Done():
			time.Sleep(1 + rolls.below(50*time.Microsecond))
			return false, ctx.Err()
		}
	}
}

// listen subscribes to the news of the owner's key. That takes no message: a
// subscription stands once for all waiters.
func (d *driver) listen(o owner, ticket string, woken chan<- news) *listener {
	l := &listener{key: o.key, ticket: ticket}
	nth := 0
	l.tell = func(x news) {
		f := d.fate(opWake, o, nth)
		nth++
		if f.mute {
			return
		}
		d.reply(f, func() {
			select {
			case woken <- x:
			default:
			}
		})
	}
	d.n.mu.Lock()
	defer d.n.mu.Unlock()
	d.n.waiting = append(d.n.waiting, l)
	return l
}
