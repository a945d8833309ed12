package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// The modes of a run.
const (
	minority = "minority" // what doc/guarantees.md promises exclusion under
	beyond   = "beyond"   // more than that: only tokens and the resource hold
)

// fault is a kind of what can go wrong.
type fault struct {
	name   string // with its number in the catalogue of faults
	weight int
	nodes  int // how many nodes it befalls at once
	least  int // how many there have to be

	bad     bool // they count among the few that may be bad at once
	forgets bool // they may have forgotten locks, so they are bad until those have ended
	keeps   bool // they have not: only a quorum can't know
	alone   bool // it needs all other nodes well
	clients bool // it befalls clients
	steady  bool // it needs clients that were there before, and go on
	clock   bool // it sets a server's clock
	sleeps  bool // it needs a client that can be suspended
	beyond  bool // it is outside the promise

	do func(*nemesis, *strike)
}

// strike is one fault that happened.
type strike struct {
	Fault  string
	Nodes  []int
	Client int // −1: none, or all
	From   int64
	To     int64

	kind  fault
	dice  *rand.Rand
	ctx   context.Context
	undue bool // it went beyond the promise, as it turned out
	void  bool // it did not come about
}

// pause takes a random time, mostly a short one, or until the run ends.
func (s *strike) pause(shortest, longest time.Duration) {
	share := s.dice.Float64()
	select {
	case <-s.ctx.Done():
	case <-time.After(shortest + time.Duration(float64(longest-shortest)*share*share*share)):
	}
}

// nemesis lets faults befall a world.
type nemesis struct {
	*world
	faults []fault
	dice   *rand.Rand
	wg     sync.WaitGroup
	moving sync.Mutex // one promotion at a time: there is one spare

	lock    sync.Mutex
	taken   []bool // something befalls the node
	bad     int
	steady  int // strikes under way that need steady clients
	shaking int // strikes under way that befall clients
	past    []*strike
}

func newNemesis(w *world) *nemesis {
	n := &nemesis{world: w, taken: make([]bool, w.Nodes), dice: rand.New(rand.NewPCG(w.Seed, 2))}
	for _, f := range catalogue(w.Nodes) {
		only := len(w.Only) == 0 && f.weight > 0 || slices.Contains(w.Only, f.name)
		if only && w.can(f) && n.fits(f) {
			n.faults = append(n.faults, f)
		}
	}
	if len(n.faults) == 0 {
		w.tb.Fatalf("no fault of mode %s is named in %q", w.Mode, w.Only)
	}
	return n
}

// can says whether there is what a fault needs.
func (w *world) can(f fault) bool {
	return w.Nodes >= f.least && (!f.clock || w.moves) && (!f.sleeps || len(w.sleepers()) > 0)
}

// fits says whether the mode has a fault. Of one node nothing is promised that
// forgets, or whose clock is set. Beyond the promise tokens still rise, but for
// one case: counters that a clock far ahead has pushed, and that are then
// forgotten. So a run has the one or the other.
func (n *nemesis) fits(f fault) bool {
	one := n.Nodes == 1
	forgets := f.forgets && !(one && f.keeps)
	switch {
	case n.Mode == minority:
		return !f.beyond && !(one && forgets)
	case n.Seed%2 == 0:
		return !forgets || f.clock
	}
	return !f.clock
}

// mostBad is how many nodes may be bad at once. A single one may: it has no
// majority to lose, and is just not there.
func (n *nemesis) mostBad() int {
	if n.Mode == minority && n.Nodes > 1 {
		return n.Nodes - (n.Nodes/2 + 1)
	}
	return n.Nodes/2 + 1
}

// run strikes until ctx ends, then waits until all is well again.
func (n *nemesis) run(ctx context.Context) {
	n.background(usual)
	f := n.draw()
	for ctx.Err() == nil {
		seed, wait := n.dice.Uint64(), time.Duration(n.dice.Int64N(int64(500*time.Millisecond)))
		s := n.begin(ctx, f, seed)
		if s != nil {
			n.wg.Go(func() { n.strike(s) })
		}
		if s != nil || n.Nodes == 1 || f.nodes < n.Nodes { // what befalls all waits for the others to be over
			f = n.draw()
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	n.wg.Wait()
	n.background(0)
}

func (n *nemesis) draw() fault {
	sum := 0
	for _, f := range n.faults {
		sum += max(1, f.weight)
	}
	at := n.dice.IntN(sum)
	for _, f := range n.faults {
		if at -= max(1, f.weight); at < 0 {
			return f
		}
	}
	panic("weights do not add up")
}

// begin reserves what a fault befalls; nil if that would go too far now.
func (n *nemesis) begin(ctx context.Context, f fault, seed uint64) *strike {
	n.lock.Lock()
	defer n.lock.Unlock()
	s := &strike{Fault: f.name, Client: -1, kind: f, dice: rand.New(rand.NewPCG(seed, 3)), ctx: ctx}
	for _, node := range s.dice.Perm(n.Nodes) {
		if len(s.Nodes) < f.nodes && !n.taken[node] {
			s.Nodes = append(s.Nodes, node)
		}
	}
	inside := n.Mode == minority
	switch {
	case len(s.Nodes) < f.nodes,
		f.bad && !f.alone && n.bad+f.nodes > n.mostBad(),
		f.alone && n.bad > 0,
		inside && f.clients && n.steady > 0,
		inside && f.steady && n.shaking > 0:
		return nil
	}
	n.reserve(f, s, 1)
	n.past = append(n.past, s)
	s.From = n.world.clock.Now()
	return s
}

// reserve begins or ends what a strike takes.
func (n *nemesis) reserve(f fault, s *strike, by int) {
	for _, node := range s.Nodes {
		n.taken[node] = by > 0
	}
	if f.bad {
		n.bad += by * f.nodes
	}
	if f.steady {
		n.steady += by
	}
	if f.clients {
		n.shaking += by
	}
}

func (n *nemesis) strike(s *strike) {
	f := s.kind
	if f.clients {
		s.Client = s.dice.IntN(len(n.world.clients))
	}
	f.do(n, s)
	n.lock.Lock()
	s.To = n.world.clock.Now()
	n.lock.Unlock()
	if f.forgets && n.Nodes > 1 {
		select {
		case <-s.ctx.Done():
		case <-time.After(n.delay()):
		}
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	n.reserve(f, s, -1)
}

// failed notes that a fault did not come about, as when its server did not
// answer for another's sake.
func (s *strike) failed(err error) bool {
	s.void = s.void || err != nil
	return err != nil
}

// strikes lists what happened.
func (n *nemesis) strikes() []*strike {
	n.lock.Lock()
	defer n.lock.Unlock()
	return slices.DeleteFunc(slices.Clone(n.past), func(s *strike) bool { return s.void })
}
