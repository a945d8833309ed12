package sim

import (
	"time"

	"github.com/distmutex/distmutex/backend"
)

const (
	ms      = time.Millisecond
	maxTTL  = 400 * ms   // the longest term of any client
	reach   = maxTTL / 4 // how far from its own clock a node lets a client's floor be
	sway    = 25 * ms    // how far a sane node's clock is off at most
	keys    = 2          // locks in all
	horizon = 1500 * ms  // when the faults end
	day     = 24 * time.Hour
)

// delay is how long a node that may have forgotten something does not count. It
// covers the longest term, and the counters that were lost: 2 reach + 2 sway.
const delay = maxTTL + maxTTL/100 + 2*ms + 4*sway

// Shortest is the shortest Life of a counter that does not end while a node which
// forgot it may be away.
const Shortest = 2*delay + maxTTL

// Mode is what kind of faults a plan has, and so what may be asked of it.
type Mode int

const (
	Rough   Mode = iota // the network, crashes with all data kept, freezes, clients
	Amnesia             // and nodes that forget, under delayed restart
	Jump                // and one node whose clock jumps far ahead
	Beyond              // and what no lease survives: see Wild
)

// Wild is what goes beyond the assumptions of exclusion.
type Wild int

const (
	Tame      Wild = iota
	Forgetful      // nodes forget and count at once
	Racing         // clocks at rates beyond the drift allowance
	Jumping        // any clocks jump ahead by any time
	Stealing       // locks are deleted by hand
	wilds
)

// Plan is one schedule: all that is drawn at first. What befalls single messages
// is drawn from Seed later.
type Plan struct {
	Seed    int64
	Mode    Mode
	Wild    Wild
	Nodes   []NodePlan
	Clients []ClientPlan
	Faults  []Fault

	TTL         time.Duration
	NodeTimeout time.Duration
	Latency     time.Duration // the most that a usual message takes one way
	Slow        int           // per cent of the messages that take up to two terms
	Twice       int           // per cent that are sent twice
	Life        time.Duration // how long a counter outlives its last use
	Fresh       bool          // so do those that were there at first; else they stay for a day
	Waiters     bool          // nodes tell of releases
	Queues      bool          // and keep a queue, if the clocks are known
	Identify    bool          // nodes say who they are
	Clocks      bool          // nodes that are ahead of the others do not count
	Source      bool          // tokens come from elsewhere, through fencing.Middleware
}

// NodePlan is a node as it begins.
type NodePlan struct {
	Offset  time.Duration // of its clock
	Rate    int           // of its clock, in parts per million too fast
	Counter backend.Token // of each lock
}

// ClientPlan is one client process.
type ClientPlan struct {
	Offset     time.Duration // of its wall clock
	Rate       int           // of its clock, in parts per million too fast
	Loss       int           // per cent of its messages, each way
	Retry      bool          // it repeats what was not answered
	MinHold    time.Duration
	MaxHold    time.Duration
	RenewEvery time.Duration
	HandOver   time.Duration
	Linger     time.Duration
	Programs   [][]Step // one for each goroutine
}

// Excludes says whether no two holds may overlap.
func (p *Plan) Excludes() bool { return p.Wild == Tame }

// Validity says whether what a holder was told must be so on a majority.
func (p *Plan) validity() bool { return p.Wild == Tame && p.Mode != Jump }

// progress says whether the nodes that are well at the end are a majority.
func (p *Plan) progress() bool { return !p.Clocks || p.Wild != Racing && p.Wild != Jumping }

// need is a majority.
func (p *Plan) need() int { return len(p.Nodes)/2 + 1 }

// Make draws the plan of a seed.
func Make(seed int64) Plan {
	r := rollsOf(seed, 1)
	p := Plan{Seed: seed, Mode: []Mode{Rough, Rough, Rough, Rough, Amnesia, Amnesia, Amnesia, Jump, Beyond, Beyond}[r.n(10)]}
	if p.Mode == Beyond {
		p.Wild = Forgetful + Wild(r.n(int(wilds-Forgetful)))
	}
	size := []int{3, 3, 3, 3, 5, 5, 5, 5, 4, 1}[r.n(10)]
	if p.Mode == Jump {
		size = []int{3, 5}[r.n(2)]
	}
	p.TTL = r.between(100, 400).Truncate(1) * ms
	p.Latency = []time.Duration{ms / 2, ms, 2 * ms, 5 * ms}[r.n(4)]
	p.NodeTimeout = 20*p.Latency + r.between(20*ms, 100*ms)
	p.Slow = []int{0, 0, 2, 10}[r.n(4)]
	p.Twice = []int{0, 0, 1, 5}[r.n(4)]
	p.Life = []time.Duration{Shortest, day, day, day}[r.n(4)]
	p.Waiters, p.Identify, p.Source = r.percent(70), r.percent(40), r.percent(10)
	p.Clocks = p.Mode == Jump || r.percent(50)
	for range size {
		p.Nodes = append(p.Nodes, p.node(&r))
	}
	for range 2 + r.n(3) {
		p.Clients = append(p.Clients, p.client(&r))
	}
	for range r.n(7) {
		p.Faults = append(p.Faults, p.fault(&r))
	}
	p.Faults = append(p.Faults, p.own(&r)...)
	p.later()
	p.linger()
	p.queue()
	return p
}

// node draws a node's clock: with the clients' it stays within the drift allowance
// of 1 %, unless they are Racing.
func (p *Plan) node(r *rolls) NodePlan {
	n := NodePlan{Offset: r.between(-sway, sway), Rate: r.around(4000)}
	if p.Wild == Racing {
		n.Rate = r.around(60_000)
	}
	if r.percent(40) {
		// Ahead of the clock, so that nodes differ and are raised: by no more than
		// a client can bring about, unless it is never forgotten.
		ahead := reach
		switch {
		case p.Wild == Forgetful:
			ahead = time.Microsecond // else who comes after the wipe gets less
		case p.Life == day && p.Mode != Amnesia:
			ahead = 2 * horizon
		}
		n.Counter = Stamp(r.below(ahead))
	}
	return n
}

func (p *Plan) client(r *rolls) ClientPlan {
	c := ClientPlan{Rate: r.around(4000), Loss: []int{0, 1, 3, 6}[r.n(4)], Retry: r.percent(50)}
	switch {
	case p.Wild == Forgetful || p.Mode == Jump:
		// Then tokens, or the median of the clocks, rest on the clients' too.
	case r.percent(30):
		c.Offset = []time.Duration{-time.Hour, -10 * time.Second, 150 * ms, 10 * time.Second, time.Hour}[r.n(5)]
	default:
		c.Offset = r.between(-20*ms, 20*ms)
	}
	if r.percent(15) {
		c.MinHold = r.between(0, p.TTL/2)
	}
	if r.percent(20) {
		c.MaxHold = p.TTL + r.below(p.TTL)
	}
	switch r.n(10) {
	case 0:
		c.RenewEvery = -1
	case 1:
		c.RenewEvery = p.TTL / 2
	}
	if c.MinHold == 0 {
		c.HandOver = []time.Duration{0, 0, p.TTL, 2 * p.TTL, -1}[r.n(5)]
	}
	for range []int{1, 1, 1, 2, 4}[r.n(5)] {
		c.Programs = append(c.Programs, p.program(r))
	}
	return c
}
