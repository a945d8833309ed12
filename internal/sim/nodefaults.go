package sim

import "time"

// suffer does to the node what f says; for a crash, the end of it comes later.
func (n *node) suffer(f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch f.Kind {
	case Crash, Wipe, Rewind, Flush:
		n.queues = [keys]queue{}
	}
	switch f.Kind {
	case Crash, Wipe, Rewind:
		n.down = true
		n.w.after(f.For, func() { n.restart(f) })
	case Flush:
		n.forget(data{})
	case Leap:
		n.leap(f.By)
	case Steal:
		if l := n.lock(f.Key); l.owner != none {
			n.forgot[l.owner] = true
			*l = lock{}
			n.save()
		}
	}
	n.w.log.event("node", n.id, f.Kind.String())
}

func (n *node) restart(f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.down {
		return // another fault's restart came first
	}
	n.down = false
	switch f.Kind {
	case Wipe:
		n.forget(data{})
	case Rewind:
		n.forget(n.before(n.w.now() - f.For - f.By))
	}
	n.w.log.event("node", n.id, "is back")
}

// before is the state as it was then.
func (n *node) before(at time.Duration) (d data) {
	for _, s := range n.past {
		if s.at <= at {
			d = s.data
		}
	}
	return d
}

// forget puts an older state in place of the present one, which the node will not
// remember for as long as the delay lasts.
func (n *node) forget(d data) {
	for key := range n.data.locks { // what it has now, and what comes back
		for _, o := range []owner{n.data.locks[key].owner, d.locks[key].owner} {
			if o != none {
				n.forgot[o] = true
			}
		}
	}
	clear(n.dead)
	n.data, n.born = d, n.w.now()
	n.save()
}

// leap moves the node's clock. What ends by it ends earlier.
func (n *node) leap(by time.Duration) {
	n.offset += by
	now := n.clock()
	for _, l := range n.data.locks {
		if l.owner != none && l.ends <= now {
			n.forgot[l.owner] = true
		}
	}
}
