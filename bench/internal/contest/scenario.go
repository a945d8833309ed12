package contest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// scenario is one thing to be measured, of several peers.
type scenario struct {
	name, what string
	peers      []string // the first is what ratios are taken of
	servers    int      // for each peer
	shared     bool     // the peers share the servers
	processes  int
	length     time.Duration // of a round, where one has to be longer than the others
	job        spec          // what each process does
	fault      func(*servers)
	columns    []column
}

var (
	onServer   = []string{bare, redsyncPeer, redislockPeer, rueidisPeer, ours}
	repeatedly = append(slices.Clone(onServer), oursLingering)
	onNodes    = []string{bare, redsyncPeer, ours, oursLingering}

	cycleColumns   = []column{rate, perFloor, commands, allocs, allocBytes}
	contendColumns = []column{rate, perFloor, commands, jain, longest}
	nodeColumns    = []column{rate, perFloor, median, tail, slowest, first}
)

var scenarios = []scenario{
	{name: "one", what: "1 goroutine, free key", peers: repeatedly, servers: 1, processes: 1,
		job: spec{Job: "cycles", Clients: 1, Goroutines: 1, Samples: true}, columns: append(slices.Clone(cycleColumns), median, tail)},
	{name: "free", what: "64 goroutines, 64 free keys", peers: repeatedly, servers: 1, processes: 1,
		job: spec{Job: "cycles", Clients: 1, Goroutines: 64, OwnKeys: true}, columns: cycleColumns},
	{name: "local", what: "32 goroutines, one key, one process", peers: repeatedly, servers: 1, processes: 1,
		job: spec{Job: "cycles", Clients: 1, Goroutines: 32}, columns: contendColumns},
	{name: "processes", what: "8 processes, one key", peers: repeatedly, servers: 1, processes: 8,
		job: spec{Job: "cycles", Clients: 1, Goroutines: 1}, columns: contendColumns},
	{name: "hold", what: "64 processes, one key, 5 ms hold (200/s possible)", peers: repeatedly, servers: 1, processes: 64, length: 4 * time.Second,
		job: spec{Job: "cycles", Clients: 1, Goroutines: 1, Hold: 5 * time.Millisecond}, columns: contendColumns},
	{name: "crowd", what: "512 clients in 64 processes, one key, 5 ms hold", peers: []string{bare, redislockPeer, ours}, servers: 1, processes: 64, length: 12 * time.Second,
		job: spec{Job: "cycles", Clients: 8, Goroutines: 1, Hold: 5 * time.Millisecond}, columns: contendColumns},
	{name: "handover", what: "hand-over between two processes: from before Unlock to after the other's Lock", peers: repeatedly, servers: 1, processes: 2,
		job: spec{Job: "handover", Clients: 1, Goroutines: 1}, columns: []column{handover, handoverTail, ping, inPings, rested, inRested}},

	nodeScenario("nodes", "5 nodes, 1 goroutine, free key", nil),
	nodeScenario("dead1", "5 nodes, one dead", func(s *servers) { s.all[0].Kill() }),
	nodeScenario("dead2", "5 nodes, two dead", func(s *servers) { s.all[0].Kill(); s.all[1].Kill() }),
	nodeScenario("frozen1", "5 nodes, one frozen", func(s *servers) { s.all[0].Freeze() }),
	nodeScenario("frozen2", "5 nodes, two frozen", func(s *servers) { s.all[0].Freeze(); s.all[1].Freeze() }),

	{name: "nodes-processes", what: "5 nodes, 16 processes, one key", peers: onNodes[1:], servers: 5, shared: true, processes: 16, length: 2 * time.Second,
		job: spec{Job: "cycles", Clients: 1, Goroutines: 1}, columns: contendColumns},
	{name: "nodes-hold", what: "5 nodes, 64 clients in 16 processes, one key, 5 ms hold", peers: onNodes[1:], servers: 5, shared: true, processes: 16, length: 4 * time.Second,
		job: spec{Job: "cycles", Clients: 4, Goroutines: 1, Hold: 5 * time.Millisecond}, columns: contendColumns},

	{name: "holds", what: "10,000 holds renewed by one process", peers: []string{rueidisPeer, ours}, servers: 1, processes: 1, length: 5 * time.Second,
		job: spec{Job: "holds", Clients: 1, Goroutines: 10_000, OwnKeys: true, TTL: 10 * time.Second, Settle: time.Second}, columns: []column{goroutines, heapEach, stackEach, renewals, perRead, clientCPU, serverCPU}},
	{name: "waiters", what: "2,000 goroutines of one process wait for one key that another process holds", peers: onServer, servers: 1, processes: 1,
		job: spec{Job: "waiters", Clients: 1, Goroutines: 2_000, Settle: 2 * time.Second}, columns: []column{goroutines, heapEach, stackEach, waiterCommands}},
	{name: "waiters-keys", what: "2,000 goroutines of one process wait for 2,000 keys that another process holds", peers: onServer, servers: 1, processes: 1,
		job: spec{Job: "waiters", Clients: 1, Goroutines: 2_000, Settle: 2 * time.Second, OwnKeys: true}, columns: []column{goroutines, heapEach, stackEach, waiterCommands}},
	{name: "memory", what: "memory backend, uncontended, beside a one-slot channel", peers: []string{channelPeer, memoryPeer}, processes: 1,
		job: spec{Job: "tight", Clients: 1, Goroutines: 1}, columns: []column{perCycle, timesFloor, allocs, allocBytes}},
}

func nodeScenario(name, what string, fault func(*servers)) scenario {
	return scenario{name: name, what: what, peers: onNodes, servers: 5, shared: true, processes: 1, fault: fault,
		job: spec{Job: "cycles", Clients: 1, Goroutines: 1, Samples: true}, columns: nodeColumns}
}

// measure runs one scenario: the peers take turns, round by round.
func measure(ctx context.Context, s settings, sc scenario) (err error) {
	h := newHost()
	defer h.end(&err)
	raw, err := os.Create(filepath.Join(s.out, sc.name+".jsonl"))
	if err != nil {
		return err
	}
	defer raw.Close()

	var fleets []*fleet
	defer func() {
		for _, f := range fleets {
			f.stop()
		}
	}()
	var common *servers
	for _, name := range sc.peers {
		if s.peers != "" && !slices.Contains(strings.Split(s.peers, ","), name) {
			continue
		}
		if g := guest(name); g != nil {
			common = h.receive(g)
		} else if common == nil || !sc.shared {
			common = h.start(s.flavour, sc.servers)
		}
		profile := ""
		if s.profile {
			profile = filepath.Join(s.out, sc.name+"-"+strings.ReplaceAll(name, "/", "-"))
		}
		switch f, err := launch(ctx, sc, name, profile, common); {
		case err == nil:
			fleets = append(fleets, f)
		case name == ours:
			return err
		default: // a peer that fails is no reason not to measure the others
			fmt.Fprintf(s.log, "  %s is left out: %v\n", name, err)
		}
	}
	for n := range s.rounds + 1 { // number 0 warms up
		if n == 1 && sc.fault != nil {
			sc.fault(common)
		}
		if err := turn(ctx, s, fleets, n, raw); err != nil {
			return err
		}
	}
	return nil
}

// patience is how many rounds a peer takes part in that needs far longer for
// them than it should: a few tell enough about it.
const patience = 2

// turn is one round of each peer.
func turn(ctx context.Context, s settings, fleets []*fleet, n int, raw *os.File) error {
	for i := range fleets {
		f := fleets[(i+n)%len(fleets)] // nobody is always the first
		if f.gone || f.slow && n > patience {
			continue
		}
		began := time.Now()
		length := max(s.length, f.length)
		if n == 0 {
			length = min(length, time.Second/2)
		}
		r, err := f.round(ctx, length)
		switch {
		case err != nil && f.peer == ours:
			return err
		case err != nil:
			fmt.Fprintf(s.log, "  %d %s ends here: %v\n", n, f.peer, err)
			f.gone = true
			continue
		}
		f.slow = f.slow || time.Since(began) > 3*length+2*time.Second
		if n == 0 {
			continue
		}
		r.Round = n
		if err := r.write(raw); err != nil {
			return err
		}
		fmt.Fprintf(s.log, "  %d %-12s %s\n", n, f.peer, r)
	}
	return nil
}
