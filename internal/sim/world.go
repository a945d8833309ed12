package sim

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// epoch is when a bubble begins: midnight UTC, 2000-01-01.
const epoch = 946_684_800 * time.Second

// world is one run of a plan.
type world struct {
	plan  *Plan
	trace bool
	begun time.Time
	log   *ledger

	nodes     []*node
	clients   []*client
	resources [keys]*resource

	mu     sync.Mutex
	taken  map[time.Duration]bool // instants in which something happens
	owners map[string]owner
	drawn  [][keys]int
	tokens [keys]backend.Token // of the Source
	asked  []int               // draws from the Source, by client
}

// Report is what came of a run.
type Report struct {
	Breaches []Breach
	Hash     uint64 // of all events and their instants
	Attempts int
	Holds    int
	Turns    int // holds of a lease that another goroutine had before
	Writes   int
	Stale    int // writes that the resource refused
	Net      Net
	Timeline []string
}

// Net counts messages from clients to nodes.
type Net struct {
	Messages int
	Lost     int // that never arrived
	Mute     int // whose answer never did
	Twice    int // that arrived twice
}

// Run runs a plan in a bubble of its own. A bubble that can't end, because some
// goroutine never does, panics: that breaks a law, too.
func Run(t *testing.T, p Plan, trace bool) (r Report) {
	defer func() {
		if e := recover(); e != nil {
			r.Breaches = append(r.Breaches, Breach{Quiet, fmt.Sprint(e)})
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, uint64(p.Seed))
		w := newWorld(&p, trace)
		w.run()
		r = w.report()
	})
	return r
}

func newWorld(p *Plan, trace bool) *world {
	w := &world{plan: p, trace: trace, begun: time.Now(), taken: make(map[time.Duration]bool), owners: make(map[string]owner), drawn: make([][keys]int, len(p.Clients)), asked: make([]int, len(p.Clients))}
	w.log = newLedger(w)
	for i, n := range p.Nodes {
		w.nodes = append(w.nodes, newNode(w, i, n))
	}
	for i := range w.resources {
		w.resources[i] = &resource{w: w}
	}
	return w
}

func (w *world) now() time.Duration { return time.Since(w.begun) }

// after calls f in d, or in the next instant in which nothing else was to happen:
// of two goroutines that wake in one, the scheduler would choose. It is for callers
// who have an instant of their own now, so that this order is not the scheduler's.
func (w *world) after(d time.Duration, f func()) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.taken[now+d] {
		d++
	}
	w.taken[now+d] = true
	time.AfterFunc(d, f)
}

func (w *world) run() {
	for i := range w.plan.Clients {
		c, err := newClient(w, i)
		if err != nil {
			w.log.breach(Truth, "client %d did not begin: %v", i, err)
			return
		}
		w.clients = append(w.clients, c)
	}
	for _, f := range w.plan.Faults {
		switch {
		case f.Kind >= Crash:
			w.after(f.At, func() { w.nodes[f.Node].suffer(f) })
		case f.Kind == Sleep:
			w.after(f.At, func() { w.clients[f.Client].suspend(f.By) })
		}
	}
	var programs sync.WaitGroup
	for _, c := range w.clients {
		programs.Go(func() {
			c.greet()
			for i := range c.plan.Programs {
				programs.Go(func() { c.run(i) })
			}
		})
	}
	programs.Wait()
	w.recover()
	w.close()
	w.log.judge()
}

// recover waits until the faults are over and what they left behind has ended,
// and lets everybody have every lock once more, at the same time.
func (w *world) recover() {
	time.Sleep(max(0, horizon-w.now()) + delay + 2*maxTTL)
	var all sync.WaitGroup
	for _, c := range w.clients {
		if c.dead() {
			continue
		}
		for key := range keys {
			all.Go(func() { c.getsLock(key) })
		}
	}
	all.Wait()
	settle := 6*w.plan.Latency + 10*ms
	for _, c := range w.plan.Clients {
		settle = max(settle, max(c.MinHold, c.Linger)+4*w.plan.Latency+10*ms)
	}
	time.Sleep(settle)
	w.quiet()
}

// close ends all clients, each right after it had a lock once more: what lingers
// then is released by Close, and only what MinHold keeps is not. The bubble fails
// if a goroutine is left.
func (w *world) close() {
	for _, c := range w.clients {
		if !c.dead() && c.plan.MinHold == 0 {
			c.getsLock(0)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		if err := c.now().Close(ctx); err != nil && !c.dead() {
			w.log.breach(Quiet, "client %d did not close: %v", c.id, err)
		}
		if err := c.nodes.Close(ctx); err != nil {
			w.log.breach(Quiet, "the quorum of client %d did not close: %v", c.id, err)
		}
		cancel()
	}
	w.quiet()
}

func (w *world) report() Report {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	return Report{
		Breaches: l.breaches, Hash: l.hash, Attempts: len(l.attempts),
		Holds: len(l.holds), Turns: l.turns, Writes: l.writes, Stale: l.stale, Net: l.net, Timeline: l.timeline(),
	}
}

// draws counts what a client asked the Source for.
func (w *world) draws(client int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[client]++
	return w.asked[client]
}

// next draws a token.
func (w *world) next(key int, floor backend.Token) backend.Token {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens[key] = max(w.tokens[key]+1, floor)
	return w.tokens[key]
}

// Broke says whether a law was broken; "" is any law.
func (r *Report) Broke(law Law) bool {
	for _, b := range r.Breaches {
		if law == "" || b.Law == law {
			return true
		}
	}
	return false
}

// Add adds another's counts.
func (n *Net) Add(o Net) {
	n.Messages += o.Messages
	n.Lost += o.Lost
	n.Mute += o.Mute
	n.Twice += o.Twice
}
