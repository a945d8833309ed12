package quorum

import (
	"context"
	"slices"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// debts are the releases that a node could not be told. They are paid when it
// answers again and forgotten when the lease has ended by itself. The node's
// mutex guards them.
type debts struct {
	leases []backend.Lease     // one for each owner, the oldest debt first
	keys   map[string]struct{} // keys for which a release may be owed
	timer  *time.Timer         // the next attempt to pay; nil: none
	paying bool
	closed bool
}

// owe remembers a release that did not reach the node.
//
// Unless an acquire of this owner is known to be unanswered, the node can only
// have granted it before it was set aside. Then the first such release of a key
// is the one that matters: the later ones' acquires were never sent. So the
// debts do not grow with the number of holds that came and went meanwhile.
func (n *node) owe(l backend.Lease) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.armLocked()
	d := &n.owed
	_, doubted := n.doubt[l.Owner]
	delete(n.doubt, l.Owner)
	_, another := d.keys[l.Key]
	full := len(d.leases) >= n.q.opts.MaxInFlight
	if d.closed || l.Ended(time.Now()) || !doubted && (another || full) {
		return // it ends by its term
	}
	if d.keys == nil {
		d.keys = make(map[string]struct{})
	}
	if l.Start.IsZero() {
		l.Start = time.Now()
	}
	d.keys[l.Key] = struct{}{}
	if i := slices.IndexFunc(d.leases, func(old backend.Lease) bool { return old.Owner == l.Owner }); i >= 0 {
		d.leases[i] = l
		return
	}
	d.leases = append(d.leases, l)
}

// armLocked sees to it that what is owed is tried some time.
func (n *node) armLocked() {
	if d := &n.owed; len(d.leases) > 0 && !d.paying && !d.closed && d.timer == nil {
		d.timer = time.AfterFunc(n.q.suspicion(), n.pay)
	}
}

// dueLocked makes the debts payable, behind what this answer of the node sets off.
func (n *node) dueLocked() {
	if d := &n.owed; d.timer != nil {
		d.timer.Reset(time.Millisecond)
	}
}

// pay sends what is owed, one release after the other, until one fails.
func (n *node) pay() {
	if !n.beginPaying() {
		return
	}
	defer n.q.calls.Done()
	for {
		l, ok := n.nextDebt()
		if !ok {
			return
		}
		if !n.payOne(l) {
			return
		}
	}
}

// payOne releases l in its lane's order; it owes it still if that fails.
func (n *node) payOne(l backend.Lease) bool {
	visit := n.q.lanes.enter(l.Key, l.Owner)
	defer visit.end()
	visit.queue(n.index)
	defer visit.leave(n.index)
	visit.turn(n.index)
	err := n.call(context.Background(), "release", l.Key, true, func(ctx context.Context) error {
		return n.b.Release(ctx, l)
	})
	if isAnswer(err) {
		return true
	}
	n.stopPaying(l.Owner)
	n.owe(l)
	return false
}

func (n *node) beginPaying() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := &n.owed
	d.timer = nil
	if d.closed || d.paying {
		return false
	}
	d.paying = true
	n.q.calls.Add(1)
	return true
}

func (n *node) stopPaying(owner string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owed.paying = false
	n.doubtLocked(owner)
}

// nextDebt takes a debt that still matters; when there is none, paying ends.
func (n *node) nextDebt() (backend.Lease, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := &n.owed
	for len(d.leases) > 0 {
		l := d.leases[0]
		d.leases[0] = backend.Lease{}
		d.leases = d.leases[1:]
		if !l.Ended(time.Now()) && !d.closed {
			return l, true
		}
	}
	d.leases = nil
	d.paying = false
	clear(d.keys)
	return backend.Lease{}, false
}

// close forgets the debts: they end by their terms.
func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := &n.owed
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
}
