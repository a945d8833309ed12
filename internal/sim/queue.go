package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// turnLife is how long a node keeps a lock for the one whose turn it is.
const turnLife = 100 * ms

// queue is who waits for a lock, by their tickets, and for whom it is kept.
type queue struct {
	line []string // the first is next
	turn string
	ends time.Duration // of the turn, by the node's clock
}

// news is what a node tells those who wait for a key: that it is free, or whose
// turn it is, or who has become the first.
type news struct {
	ticket string
	look   bool
}

// listener is a client that waits at a node for a release.
type listener struct {
	key    int
	ticket string
	tell   func(news)
}

// tell passes news on to those who wait for it. n.mu is held, as below.
func (n *node) tell(key int, x news) {
	for _, l := range n.waiting {
		if l.key == key && (l.ticket == "" || x.ticket == "" || l.ticket == x.ticket) {
			l.tell(x)
		}
	}
}

func (n *node) leave(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.Index(n.waiting, l); i >= 0 {
		n.waiting = slices.Delete(n.waiting, i, i+1)
	}
}

// ahead orders tickets, the empty one last.
func ahead(a, b string) int {
	if a == "" || b == "" {
		return strings.Compare(b, a)
	}
	x, y := came(a), came(b)
	if x != y {
		return int(min(max(x-y, -1), 1))
	}
	return strings.Compare(a, b)
}

func came(ticket string) int64 {
	text, _, _ := strings.Cut(ticket, "-")
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Queues is for package quorum.
func (d *driver) Queues() bool { return d.w.plan.Queues }

func (n *node) queue(key int) *queue {
	q := &n.queues[key]
	if q.ends <= n.clock() {
		q.turn = ""
	}
	return q
}

// enter says whether a free lock is not kept for somebody who is ahead.
func (n *node) enter(key int, ticket string) bool {
	q := n.queue(key)
	if q.turn != "" && ahead(q.turn, ticket) < 0 {
		return false
	}
	q.turn = ""
	q.drop(ticket)
	return true
}

func (q *queue) drop(ticket string) {
	q.line = slices.DeleteFunc(q.line, func(s string) bool { return s == ticket })
}

// offer keeps the lock for the first in the queue, and says so.
func (n *node) offer(key int) bool {
	q := n.queue(key)
	if len(q.line) == 0 {
		return false
	}
	q.turn, q.ends = q.line[0], n.clock()+turnLife
	q.line = q.line[1:]
	n.tell(key, news{ticket: q.turn})
	return true
}

// wait takes a place in the queue, or says that it is the caller's turn.
func (n *node) wait(o owner, ticket string) reply {
	r := reply{status: no, clock: n.clock()}
	l, q := n.lock(o.key), n.queue(o.key)
	r.left = l.ends - r.clock
	if l.owner == o || n.buried(o) {
		r.status = yes
		return r
	}
	if l.owner == none {
		if q.turn == "" && len(q.line) > 0 && ahead(q.line[0], ticket) < 0 {
			n.offer(o.key)
		}
		if q.turn == "" || ahead(q.turn, ticket) >= 0 {
			q.drop(ticket)
			q.turn, q.ends = ticket, r.clock+turnLife
			r.status = yes
			return r
		}
		r.left = q.ends - r.clock
	}
	q.drop(ticket)
	q.line = append(q.line, ticket)
	slices.SortFunc(q.line, ahead)
	r.place = slices.Index(q.line, ticket)
	return r
}

// yield takes a ticket out of the queue, and tells the next.
func (n *node) yield(key int, ticket string, released bool) {
	q := n.queue(key)
	led := len(q.line) > 0 && q.line[0] == ticket
	q.drop(ticket)
	if n.lock(key).owner == none && q.turn == ticket {
		q.turn, released = "", true
	}
	switch {
	case released:
		if !n.offer(key) {
			n.tell(key, news{})
		}
	case led && len(q.line) > 0:
		n.tell(key, news{q.line[0], true})
	}
}
