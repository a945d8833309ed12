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
// after a while in any case.
func (w waiter) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	d, _ := backend.As[*driver](w.Backend)
	o := d.c.owner(want)
	woken := make(chan struct{}, 1)
	l := d.listen(o, woken)
	defer d.n.leave(l)
	r, _, err := d.carry(ctx, opWait, o, func() reply {
		now, l := d.n.clock(), d.n.lock(o.key)
		if l.owner == none || l.owner == o {
			return reply{status: yes, clock: now}
		}
		return reply{status: no, clock: now, left: l.ends - now}
	})
	if err != nil {
		return backend.Lease{}, d.fail(opWait, want, err)
	}
	if r.status == yes {
		return backend.Lease{}, nil
	}
	rolls := rollsOf(d.w.plan.Seed, 3, d.c.id, d.n.id, o.key, o.n)
	poll := time.NewTimer(min(rolls.between(200*ms, 400*ms), r.left+ms+rolls.below(10*ms)))
	defer poll.Stop()
	select {
	case <-woken:
	case <-poll.C:
	case <-ctx.Done():
		time.Sleep(1 + rolls.below(50*time.Microsecond))
		return backend.Lease{}, d.fail(opWait, want, ctx.Err())
	}
	return backend.Lease{}, nil
}

// listen subscribes to the releases of the owner's key. That takes no message: a
// subscription stands once for all waiters.
func (d *driver) listen(o owner, woken chan<- struct{}) *listener {
	l := &listener{key: o.key}
	nth := 0
	l.tell = func() {
		f := d.fate(opWake, o, nth)
		nth++
		if f.mute {
			return
		}
		d.reply(f, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	}
	d.n.mu.Lock()
	defer d.n.mu.Unlock()
	d.n.waiting = append(d.n.waiting, l)
	return l
}
