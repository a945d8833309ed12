package sim

import (
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// node is a simulated server, with the semantics of a Redis one (doc/wire.md): a
// lock with a term, a counter of the last token owned, tombstones, and a clock of
// its own by which all of them end.
type node struct {
	w    *world
	id   int
	rate float64 // of its clock

	mu      sync.Mutex
	offset  time.Duration // of its clock, jumps included
	data    data
	past    []snapshot
	born    time.Duration // since when it has forgotten nothing
	down    bool
	forgot  map[owner]bool          // locks that it lost otherwise than by their term
	dead    map[owner]time.Duration // owners that were released, and until when no grant may follow
	waiting []*listener
	queues  [keys]queue
}

// data is all that a node keeps. It is copied as a whole.
type data struct {
	locks    [keys]lock
	counters [keys]counter
	tombs    []tomb
}

type lock struct {
	owner owner
	ends  time.Duration // by the node's clock, as all in data
}

type counter struct {
	last backend.Token
	ends time.Duration
}

type tomb struct {
	owner owner
	ends  time.Duration
}

type snapshot struct {
	at   time.Duration
	data data
}

// status is what a node answers.
type status int

const (
	yes status = iota
	no
	gone
	uncounted
)

// reply is an answer, with the node's clock when it was given.
type reply struct {
	status status
	token  backend.Token
	first  backend.Token // from there on they were nobody's
	left   time.Duration
	place  int // in the queue
	clock  time.Duration
	until  time.Duration // uncounted until then
}

func newNode(w *world, id int, p NodePlan) *node {
	n := &node{w: w, id: id, rate: 1 + float64(p.Rate)/1e6, offset: p.Offset, born: -day, forgot: make(map[owner]bool), dead: make(map[owner]time.Duration)}
	for i := range n.data.counters {
		n.data.counters[i] = counter{p.Counter, day}
		if w.plan.Fresh {
			n.data.counters[i].ends = w.plan.Life
		}
	}
	n.save()
	return n
}

// clock is the node's clock, since the beginning.
func (n *node) clock() time.Duration {
	return time.Duration(float64(n.w.now())*n.rate) + n.offset
}

// save notes the state for a Rewind.
func (n *node) save() { n.past = append(n.past, snapshot{n.w.now(), n.data}) }

// lock is who holds the key now, if anybody.
func (n *node) lock(key int) *lock {
	l := &n.data.locks[key]
	if l.ends <= n.clock() {
		*l = lock{}
	}
	return l
}

func (n *node) counter(key int) *counter {
	c := &n.data.counters[key]
	if c.ends <= n.clock() {
		*c = counter{}
	}
	return c
}

func (n *node) buried(o owner) bool {
	now := n.clock()
	for _, t := range n.data.tombs {
		if t.owner == o && t.ends > now {
			return true
		}
	}
	return false
}

// acquire is one attempt. Its hint is the client's clock in microseconds.
func (n *node) acquire(o owner, want backend.Lease, hint backend.Token, term time.Duration) reply {
	now := n.clock()
	r := reply{status: yes, clock: now}
	if until := n.born + delay; n.w.plan.Wild != Forgetful && n.w.now() < until {
		r.until = until
		if want.Token == 0 {
			r.status = uncounted // nothing new is granted in the gap
			return r
		}
	}
	l, c := n.lock(o.key), n.counter(o.key)
	switch {
	case l.owner != none && l.owner != o:
		r.status, r.token, r.left = no, c.last, l.ends-now
		return r
	case n.buried(o):
		r.status, r.token = no, c.last
		return r
	case l.owner == none && !n.enter(o.key, want.Ticket):
		r.status, r.token = no, c.last
		return r
	}
	if until, ok := n.dead[o]; ok && now < until {
		n.w.log.breach(Quiet, "node %d grants lock %d to %v, which was released there", n.id, o.key, o)
	}
	token := max(c.last, want.Token)
	if l.owner == none || c.last == 0 {
		near := max(min(hint, Stamp(now+reach)), Stamp(now-reach))
		token = max(c.last+1, near, token)
	}
	r.token, r.first = token, token
	if c.last > 0 {
		r.first = min(c.last+1, token)
	}
	*c = counter{token, max(c.ends, now+term+n.w.plan.Life)}
	*l = lock{o, max(l.ends, now+term)}
	n.save()
	if r.until > 0 {
		r.status = uncounted
	}
	return r
}

func (n *node) renew(o owner, token backend.Token, term time.Duration) reply {
	now := n.clock()
	l, c := n.lock(o.key), n.counter(o.key)
	switch {
	case l.owner == none:
		return reply{status: gone, clock: now}
	case l.owner != o:
		return reply{status: no, clock: now}
	}
	l.ends = max(l.ends, now+term)
	*c = counter{max(c.last, token), max(c.ends, now+term+n.w.plan.Life)}
	n.save()
	return reply{status: yes, clock: now}
}

// release deletes the owner's lock. If bury is set, an acquire that arrives later
// is refused. Whoever shows a ticket leaves the queue.
func (n *node) release(o owner, bury bool, ticket string) reply {
	now := n.clock()
	l := n.lock(o.key)
	r := reply{status: yes, clock: now}
	switch {
	case l.owner == none:
		r.status = gone
	case l.owner != o:
		r.status = no
	default:
		*l = lock{}
		if ticket == "" {
			n.tell(o.key, news{})
		}
	}
	if ticket != "" {
		n.yield(o.key, ticket, r.status == yes)
	}
	n.dead[o] = 1000 * day // whoever sends no tombstone knows that nothing follows
	if bury {
		n.dead[o] = now + 2*maxTTL
		n.data.tombs = append(n.data.tombs[:len(n.data.tombs):len(n.data.tombs)], tomb{o, now + 2*maxTTL})
	}
	n.save()
	return r
}

// Stamp is a clock as a token.
func Stamp(clock time.Duration) backend.Token { return backend.Token((epoch + clock).Microseconds()) }

// holds says until when the node keeps the owner's lock, zero if it does not, and
// whether a fault ever took it away, or a part of its term.
func (n *node) holds(o owner) (until time.Duration, forgot bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.lock(o.key); l.owner == o {
		return n.w.now() + time.Duration(float64(l.ends-n.clock())/n.rate), n.forgot[o]
	}
	return 0, n.forgot[o]
}
