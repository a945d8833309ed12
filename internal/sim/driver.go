package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

// driver is one client's way to one node: what backend/redis is to a server.
type driver struct {
	w *world
	c *client
	n *node

	mu       sync.Mutex
	sent     map[call]int
	doubt    map[owner]bool // an acquire of it may still arrive
	released map[owner]bool
	spent    map[owner]bool // refused for good
	watch    watch
}

type call struct {
	op    op
	owner owner
}

func newDriver(c *client, n *node) *driver {
	return &driver{w: c.w, c: c, n: n, sent: make(map[call]int), doubt: make(map[owner]bool), released: make(map[owner]bool), spent: make(map[owner]bool)}
}

// Name is for quorum's errors.
func (d *driver) Name() string { return fmt.Sprint("n", d.n.id) }

// count counts a message and says how many there were before.
func (d *driver) count(op op, o owner) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := call{op, o}
	d.sent[id]++
	switch {
	case op == opRelease, op == opSweep:
		d.released[o] = true
		d.w.log.gaveUp(d.n.id, o)
	case op == opAcquire && d.released[o]:
		d.w.log.breach(Protocol, "%v was acquired on node %d after its release was sent there", o, d.n.id)
	case op == opRenew && d.released[o]:
		d.w.log.breach(Protocol, "%v was renewed on node %d after its release was sent there", o, d.n.id)
	}
	return d.sent[id] - 1
}

func (d *driver) suspect(o owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doubt[o] = true
}

func (d *driver) doubts(o owner) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.doubt[o]
}

// term is a client's term as the node counts it.
func (d *driver) term(ttl time.Duration) time.Duration {
	return ttl + time.Duration(int64(ttl)/1000*int64(d.c.plan.Rate)/1000)
}

func (d *driver) fail(op op, l backend.Lease, err error) error {
	return &backend.Error{Op: op.String(), Key: l.Key, Node: d.Name(), Err: err}
}

func (d *driver) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	o := d.c.owner(want)
	if d.isSpent(o) {
		return backend.Lease{}, d.fail(opAcquire, want, backend.ErrHeld)
	}
	hint := Stamp(want.Start.Sub(d.w.begun) + d.c.plan.Offset)
	sent := d.w.now()
	r, settled, err := d.carry(ctx, opAcquire, o, func() reply {
		r := d.n.acquire(o, want, hint, d.term(want.TTL))
		d.w.log.acquired(d.n.id, o, r)
		return r
	})
	if !settled {
		d.suspect(o)
	}
	if err != nil {
		return backend.Lease{}, d.fail(opAcquire, want, err)
	}
	ahead := d.look(r, sent)
	switch {
	case r.until > 0:
		return backend.Lease{}, d.fail(opAcquire, want, &quorum.UncountedError{Reason: quorum.Recovering, Left: max(0, r.until-d.w.now())})
	case ahead:
		return backend.Lease{}, d.fail(opAcquire, want, &quorum.UncountedError{Reason: quorum.ClockAhead})
	case r.status == no:
		if d.doubts(o) {
			d.spend(o)
			go d.sweep(o)
		}
		return backend.Lease{}, d.fail(opAcquire, want, backend.ErrHeld)
	}
	want.Token, want.First = r.token, r.first
	return want, nil
}

// spend notes that nothing of the owner will be sent any more but its release.
func (d *driver) spend(o owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spent[o] = true
	d.w.log.gaveUp(d.n.id, o)
}

func (d *driver) isSpent(o owner) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spent[o]
}

// sweep undoes what may still come of an attempt that was refused for good.
func (d *driver) sweep(o owner) {
	ctx, cancel := context.WithTimeout(context.Background(), d.w.plan.NodeTimeout)
	defer cancel()
	_, _, _ = d.carry(ctx, opSweep, o, func() reply { return d.n.release(o, true, "") })
}

func (d *driver) Renew(ctx context.Context, held backend.Lease) error {
	o := d.c.owner(held)
	if d.isSpent(o) {
		return d.fail(opRenew, held, backend.ErrLost) // what is on its way may bring the lock, and takes it
	}
	r, _, err := d.carry(ctx, opRenew, o, func() reply {
		r := d.n.renew(o, held.Token, d.term(held.TTL))
		d.w.log.renewedOn(d.n.id, o, r)
		return r
	})
	switch {
	case err != nil:
		return d.fail(opRenew, held, err)
	case r.status != yes:
		return d.fail(opRenew, held, backend.ErrLost)
	}
	return nil
}

func (d *driver) Release(ctx context.Context, held backend.Lease) error {
	o, began := d.c.owner(held), time.Now()
	bury := held.Token == 0 || d.doubts(o)
	r, _, err := d.carry(ctx, opRelease, o, func() reply { return d.n.release(o, bury, held.Ticket) })
	switch {
	case err != nil:
		return d.fail(opRelease, held, err)
	case r.status == yes, held.Token == 0, r.status == gone && !held.Ended(began):
		return nil
	}
	return d.fail(opRelease, held, backend.ErrLost)
}

// identified is a driver whose node says who it is.
type identified struct{ *driver }

func (d identified) Identity(ctx context.Context) (string, error) {
	if _, _, err := d.carry(ctx, opIdentity, none, func() reply { return reply{} }); err != nil {
		return "", err
	}
	return d.Name(), nil
}

func (d identified) Unwrap() backend.Backend { return d.driver }
