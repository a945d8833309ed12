package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Shrink leaves out of a plan what can be left out, one thing after the other,
// while fails says that it still fails.
func Shrink(p Plan, fails func(Plan) bool) Plan {
	for again := true; again; {
		again = false
		for _, less := range p.smaller() {
			if fails(less) {
				p, again = less, true
				break
			}
		}
	}
	return p
}

// smaller is the plan without one of its parts, for each of them; the largest
// come first.
func (p *Plan) smaller() (all []Plan) {
	with := func(change func(*Plan)) {
		q := p.clone()
		change(&q)
		all = append(all, q)
	}
	for i, c := range p.Clients {
		for j := range c.Programs {
			with(func(q *Plan) { q.Clients[i].Programs = slices.Delete(q.Clients[i].Programs, j, j+1) })
		}
	}
	for i := range p.Faults {
		with(func(q *Plan) { q.Faults = slices.Delete(q.Faults, i, i+1) })
	}
	for i, c := range p.Clients {
		for j, steps := range c.Programs {
			for k := range steps {
				with(func(q *Plan) {
					q.Clients[i].Programs[j] = slices.Delete(q.Clients[i].Programs[j], k, k+1)
				})
			}
		}
	}
	if p.Fresh {
		with(func(q *Plan) { q.Fresh = false })
	}
	if p.Slow > 0 {
		with(func(q *Plan) { q.Slow = 0 })
	}
	if p.Twice > 0 {
		with(func(q *Plan) { q.Twice = 0 })
	}
	for i, c := range p.Clients {
		if c.Loss > 0 {
			with(func(q *Plan) { q.Clients[i].Loss = 0 })
		}
	}
	return all
}

func (p *Plan) clone() Plan {
	q := *p
	q.Nodes, q.Clients, q.Faults = slices.Clone(p.Nodes), slices.Clone(p.Clients), slices.Clone(p.Faults)
	for i := range q.Clients {
		q.Clients[i].Programs = slices.Clone(q.Clients[i].Programs)
		for j := range q.Clients[i].Programs {
			q.Clients[i].Programs[j] = slices.Clone(q.Clients[i].Programs[j])
		}
	}
	return q
}

var (
	modes = [...]string{"rough", "amnesia under delayed restart", "one clock leaps", "beyond"}
	wild  = [wilds]string{"", ": nodes forget and count", ": clocks race", ": clocks leap", ": locks are stolen"}
)

// String is the schedule, readably.
func (p *Plan) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "seed %d, %s%s: %d nodes, term %v, node time-out %v, up to %v one way, %d%% late, %d%% twice, queues %t\n",
		p.Seed, modes[p.Mode], wild[p.Wild], len(p.Nodes), p.TTL, short(p.NodeTimeout), p.Latency, p.Slow, p.Twice, p.Queues)
	for i, n := range p.Nodes {
		fmt.Fprintf(&s, "  n%d: clock %v off and %d ppm fast\n", i, short(n.Offset), n.Rate)
	}
	for i, c := range p.Clients {
		fmt.Fprintf(&s, "  %c: clock %v off and %d ppm fast, loses %d%%, lingers %v\n",
			'A'+i, short(c.Offset), c.Rate, c.Loss, short(c.Linger))
		for _, steps := range c.Programs {
			fmt.Fprintf(&s, "    %v\n", steps)
		}
	}
	for _, f := range p.Faults {
		fmt.Fprintf(&s, "  %v\n", &f)
	}
	return s.String()
}

var verbNames = [verbs]string{"hold", "lock", "try", "do", "close"}

func (s Step) String() string {
	return fmt.Sprintf("%s %d (after %v, within %v, %d writes after %v, stop %v)",
		verbNames[s.Verb], s.Key, short(s.Pause), short(s.Patience), s.Writes, short(s.Work), short(s.Stop))
}

func (f *Fault) String() string {
	at := fmt.Sprintf("%v at %v for %v: ", f.Kind, short(f.At), short(f.For))
	switch f.Kind {
	case Cut:
		return at + fmt.Sprintf("clients %b from nodes %b, way %d", f.Clients, f.Nodes, f.Way)
	case Stop, Die:
		return at + string(rune('A'+f.Client))
	case Sleep:
		return at + fmt.Sprintf("%c for %v", 'A'+f.Client, short(f.By))
	}
	return at + fmt.Sprintf("n%d by %v", f.Node, f.By.Round(time.Microsecond))
}
