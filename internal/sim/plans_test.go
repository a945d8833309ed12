package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/internal/sim"
)

const (
	ms  = time.Millisecond
	day = 24 * time.Hour
)

// calm is a plan in which nothing goes wrong yet. Nodes that are not cut off answer
// within 4 ms.
func calm(nodes int, clients ...sim.ClientPlan) sim.Plan {
	return sim.Plan{
		Seed: 1, TTL: 200 * ms, NodeTimeout: 60 * ms, Latency: 2 * ms, Life: day,
		Nodes: make([]sim.NodePlan, nodes), Clients: clients,
	}
}

// takes is a program that takes lock 0 once, after a pause, and keeps it for a
// while in which it uses the resource n times.
func takes(pause, work time.Duration, n int) []sim.Step {
	return []sim.Step{{Verb: sim.Hold, Pause: pause, Patience: 500 * ms, Writes: n, Work: work / time.Duration(n)}}
}

func does(programs ...[]sim.Step) sim.ClientPlan { return sim.ClientPlan{Programs: programs} }

// cut keeps a client from some nodes, as a set.
func cut(client int, nodes uint, from, to time.Duration) sim.Fault {
	return sim.Fault{Kind: sim.Cut, Clients: 1 << client, Nodes: nodes, At: from, For: to - from}
}

// ahead is a counter that no clock reaches while the plan runs.
var ahead = sim.Stamp(10 * time.Second)

// plans are traces by which an earlier wording of the design broke. A letter is a
// client, from A, which is client 0.
var plans = map[string]func() sim.Plan{
	// {0,1,3} stood above the clock. A is granted the next token by {0,1} and less
	// by 2, which is out of reach before it is raised; B reaches {2,3,4}.
	"A1": func() sim.Plan {
		p := calm(5, does(takes(ms, ms, 1)), does(takes(80*ms, ms, 1)))
		for _, i := range []int{0, 1, 3} {
			p.Nodes[i].Counter = ahead
		}
		p.Faults = []sim.Fault{cut(0, 0b11000, 0, 200*ms), cut(1, 0b00011, 0, 200*ms), cut(0, 0b00100, 3*ms, 60*ms)}
		p.Faults[2].Way = sim.Requests
		return p
	},
	// Two goroutines of A own tokens up to 16 above the one that was granted to
	// them. B reaches one of their nodes, and its clock helps it to nothing.
	"A2": func() sim.Plan {
		p := calm(5, does(takes(ms, 10*ms, 1), takes(5*ms, 10*ms, 1)), does(takes(80*ms, ms, 1)))
		for i := range p.Nodes {
			p.Nodes[i].Counter = ahead
		}
		p.Faults = []sim.Fault{cut(0, 0b11000, 0, 200*ms), cut(1, 0b00011, 0, 200*ms)}
		return p
	},
	// A, an hour ahead, has {0,1,2}. Node 2 forgets it and waits its time out; B
	// has {2,3,4}.
	"A3 wipe": func() sim.Plan {
		a := does(takes(ms, 5*ms, 1))
		a.Offset = time.Hour
		p := calm(5, a, does(takes(700*ms, ms, 1)))
		p.Mode = sim.Amnesia
		p.Faults = []sim.Fault{
			cut(0, 0b11000, 0, 1500*ms), cut(1, 0b00011, 0, 1500*ms),
			{Kind: sim.Wipe, Node: 2, At: 100 * ms, For: 5 * ms},
		}
		return p
	},
	// B, an hour ahead, has the lock once, and its counters end, though no node is
	// sick. A takes it when the faults are over.
	"A3 expiry": func() sim.Plan {
		b := does(takes(ms, 5*ms, 1))
		b.Offset = time.Hour
		p := calm(3, does(), b)
		p.Life, p.Fresh = sim.Shortest, true
		p.Faults = []sim.Fault{{Kind: sim.Die, Client: 1, At: 500 * ms}}
		return p
	},
	// A is stopped between its grants, which differ, and its raise. Meanwhile its
	// term ends and B has the lock.
	"A5": func() sim.Plan {
		p := calm(3, does(takes(ms, ms, 3)), does(takes(202*ms, 5*ms, 1)))
		p.NodeTimeout = 400 * ms
		p.Nodes[0].Counter = ahead
		p.Faults = []sim.Fault{{Kind: sim.Stop, Client: 0, At: 1500 * time.Microsecond, For: 250 * ms}}
		return p
	},
	// A, which repeats what is not answered, is refused by {0,1,2} while B has
	// them. Its release of node 3 is slow. Then it is granted {2,3,4}; C reaches
	// {0,1,3}.
	"A6": func() sim.Plan {
		a := does(takes(10*ms, 100*ms, 1))
		a.Retry = true
		p := calm(5, a, does(takes(ms, 30*ms, 1)), does(takes(80*ms, ms, 1)))
		p.Faults = []sim.Fault{
			cut(1, 0b11000, 0, 300*ms), cut(0, 0b00011, 30*ms, 300*ms), cut(2, 0b10100, 0, 300*ms),
			{Kind: sim.Lag, Node: 3, At: 10 * ms, For: 25 * ms, By: 80 * ms},
		}
		return p
	},
	// A's acquire of node 2 arrives when its release has been there.
	"A9": func() sim.Plan {
		p := calm(3, does(takes(ms, ms, 1)))
		p.Faults = []sim.Fault{{Kind: sim.Lag, Node: 2, For: 4 * ms, By: 700 * ms}}
		return p
	},
	// A's machine sleeps while it holds the lock, for three terms. B has the lock
	// when A is back.
	"C1": func() sim.Plan {
		p := calm(3, does(takes(ms, 200*ms, 20)), does(takes(10*ms, 100*ms, 10)))
		p.Faults = []sim.Fault{{Kind: sim.Sleep, Client: 0, At: 20 * ms, For: 30 * ms, By: 600 * ms}}
		return p
	},
}

// All laws hold on the traces by which earlier wordings broke.
func TestPlans(t *testing.T) {
	alone(t)
	for name, plan := range plans {
		t.Run(name, func(t *testing.T) {
			p := plan()
			r := sim.Run(t, p, true)
			t.Logf("%v\n%s", &p, strings.Join(r.Timeline, "\n"))
			for _, b := range r.Breaches {
				t.Error(b)
			}
		})
	}
}
