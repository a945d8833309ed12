package sim

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// line is one event of the timeline.
type line struct {
	at           time.Duration
	kind         string
	client, node int // -1: none
	op           op
	owner        owner
	result       int
	text         string
}

// record adds an event to the hash, and to the timeline if that is wanted. The
// hash is a sum, so it does not depend on the order in which goroutines report
// what happens in one instant. l.mu is held.
func (l *ledger) record(kind string, client, node int, op op, o owner, result int, text string) {
	e := line{l.w.now(), kind, client, node, op, o, result, text}
	x := uint64(e.at)
	for _, v := range []int{client, node, int(op), o.client, o.key, o.n, result} {
		x = mix(x ^ uint64(v)*0x9e3779b97f4a7c15)
	}
	h := fnv.New64a()
	h.Write([]byte(kind))
	h.Write([]byte(text))
	l.hash += mix(x ^ h.Sum64())
	if l.w.trace {
		l.lines = append(l.lines, e)
	}
}

func (l *ledger) event(kind string, id int, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	client, node := id, -1
	if kind == "node" {
		client, node = -1, id
	}
	l.record(kind, client, node, opApp, none, 0, text)
}

// call and ret are the library's calls of its backend, and their returns.
func (l *ledger) call(client int, op op, o owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record("call", client, -1, op, o, 0, "")
}

func (l *ledger) ret(client int, op op, o owner, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record("return", client, -1, op, o, word(err), "")
}

// sent is a message that a client has sent.
func (l *ledger) sent(client, node int, op op, o owner, f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.net.Messages++
	text := ""
	switch {
	case f.lost:
		l.net.Lost++
		text = ", and it is lost"
	case f.twice != 0:
		l.net.Twice++
		text = ", twice"
	case f.mute:
		l.net.Mute++
		text = ", and its answer is lost"
	}
	l.record("sends", client, node, op, o, 0, text)
}

// arrived is a message that a node has acted on.
func (l *ledger) arrived(client, node int, op op, o owner, r reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record("node", client, node, op, o, int(r.status)|int(r.token)<<8, "")
}

var (
	words    = [...]string{"ok", "held", "lost", "context ended", "unknown"}
	statuses = [...]string{"yes", "no", "free", "does not count"}
)

func (e line) String() string {
	at := fmt.Sprintf("%12.6f ms  ", float64(e.at)/1e6)
	who := ""
	if e.client >= 0 {
		who = string(rune('A' + e.client))
	}
	switch {
	case e.kind == "call":
		return at + fmt.Sprintf("%s        %v %v …", who, e.op, e.owner)
	case e.kind == "return":
		return at + fmt.Sprintf("%s        … %v %v: %s", who, e.op, e.owner, words[e.result])
	case e.kind == "sends":
		return at + fmt.Sprintf("%s ⇢ n%d     %v %v is sent%s", who, e.node, e.op, e.owner, e.text)
	case e.kind == "node" && e.op != opApp:
		s := at + fmt.Sprintf("%s → n%d   %v %v: %s", who, e.node, e.op, e.owner, statuses[e.result&255])
		if token := e.result >> 8; token != 0 {
			s += fmt.Sprintf(", token %d", token)
		}
		return s
	case e.kind == "node":
		return at + fmt.Sprintf("    n%d   ** %s", e.node, e.text)
	case e.kind == "breach":
		return at + "!! " + e.text
	}
	return at + fmt.Sprintf("%s        %s", who, e.text)
}

// timeline is the events in order.
func (l *ledger) timeline() (all []string) {
	slices.SortStableFunc(l.lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.client, b.client), cmp.Compare(a.node, b.node), cmp.Compare(a.String(), b.String()))
	})
	for _, e := range l.lines {
		all = append(all, e.String())
	}
	return all
}

// Difference shows where the timelines of two runs part.
func Difference(a, b Report) string {
	n := min(len(a.Timeline), len(b.Timeline))
	i := 0
	for i < n && a.Timeline[i] == b.Timeline[i] {
		i++
	}
	var s strings.Builder
	for _, l := range a.Timeline[max(0, i-20):i] {
		fmt.Fprintf(&s, "\n    %s", l)
	}
	for name, r := range map[string]Report{"first ": a, "second": b} {
		for _, l := range r.Timeline[i:min(i+8, len(r.Timeline))] {
			fmt.Fprintf(&s, "\n  %s  %s", name, l)
		}
	}
	return s.String()
}
