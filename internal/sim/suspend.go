package sim

import (
	"reflect"
	"time"

	"github.com/distmutex/distmutex/mutex"
)

// nap is a time for which a client's machine was suspended.
type nap struct{ at, by time.Duration }

// suspend lets the client's machine sleep. Its monotonic clock, by which all of
// the library's timers go, stands still meanwhile, but the nodes' clocks go on.
//
// The bubble has one clock, which can't do that, so it is seen from that machine:
// no time passes, what the nodes keep for it ends so much earlier, and its kernel
// says how long it slept. That is all that exclusion rests on, by the client's own
// clock: how others' clocks go is of no importance to it. A Sleep's For is the
// time in which others go on: the process is stopped for it as by a Stop.
func (c *client) suspend(by time.Duration) {
	c.mu.Lock()
	c.naps = append(c.naps, nap{c.w.now(), by})
	c.mu.Unlock()
	for _, n := range c.w.nodes {
		n.shorten(c.id, by)
	}
	c.w.log.slept(c.id, by)
}

// slept is how long the machine has been suspended since an instant.
func (c *client) slept(since time.Duration) (d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.naps {
		if n.at > since {
			d += n.by
		}
	}
	return d
}

// meter puts the client's machine in the place of the kernel, which the session
// would ask. No program may do that, so there is no option for it.
func (c *client) meter(s *mutex.Session) {
	m := reflect.ValueOf(s).Elem().FieldByName("meter").Elem()
	known := (*bool)(m.FieldByName("known").Addr().UnsafePointer())
	read := (*func(time.Duration) time.Duration)(m.FieldByName("read").Addr().UnsafePointer())
	*read = func(time.Duration) time.Duration {
		*known = false // the bubble's wall clock does not show a sleep: ask again
		return c.slept(-1)
	}
}

// shorten ends a client's locks so much earlier.
func (n *node) shorten(client int, by time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.data.locks {
		if l := &n.data.locks[i]; l.owner != none && l.owner.client == client {
			l.ends -= time.Duration(float64(by) * n.rate)
		}
	}
	n.save()
}

// slept takes what a client's machine slept from what it may rely on.
func (l *ledger) slept(client int, by time.Duration) {
	l.mu.Lock()
	for _, a := range l.attempts {
		if a.client == client {
			a.until -= by
		}
	}
	for _, h := range l.holds {
		if h.client == client && l.w.now() < h.told+h.kept {
			h.kept -= by
		}
	}
	l.mu.Unlock()
	l.event("client", client, "slept for "+short(by).String())
}

// reliable is until when a holder that looks at nothing but its context may rely
// on the hold, as of now: after a sleep, less long than the context lasts.
func (h *hold) reliable() time.Time {
	now := h.w.now()
	if h.w.clients[h.client].slept(h.start) > 0 {
		now = min(now, h.validity())
	}
	return h.w.begun.Add(now)
}
