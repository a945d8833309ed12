package sim

import (
	"slices"
	"time"
)

// later draws what was thought of later, from a stream of its own: so Former is what
// a seed made before.
func (p *Plan) later() {
	r := rollsOf(p.Seed, 10)
	if r.percent(35) {
		for range 1 + r.n(3) {
			p.Faults = append(p.Faults, p.sleep(&r))
		}
	}
	// A clock that leapt by hours leaves tokens behind that only a counter remembers.
	leaps := p.Mode == Jump || p.Wild == Jumping
	p.Fresh = r.percent(60) && p.Life < day && !leaps
}

// sleep draws a time for which a client's machine is suspended.
func (p *Plan) sleep(r *rolls) Fault {
	f := Fault{Kind: Sleep, Client: r.n(len(p.Clients)), At: r.below(horizon * 3 / 4), By: r.between(ms, p.TTL/2)}
	if r.percent(50) {
		f.By = r.between(p.TTL/2, 3*p.TTL)
	}
	if r.percent(60) {
		f.For = r.below(100 * ms)
	}
	return f
}

// queue draws whether nodes keep queues. That came last.
func (p *Plan) queue() {
	r := rollsOf(p.Seed, 12)
	p.Queues = r.percent(70)
}

// Hinting is the plan without queues, as a seed made it before.
func (p Plan) Hinting() Plan {
	q := p.clone()
	q.Queues = false
	return q
}

// linger draws for which clients a lease lingers. That came late.
func (p *Plan) linger() {
	r := rollsOf(p.Seed, 11)
	for i := range p.Clients {
		c := &p.Clients[i]
		longest := c.HandOver
		if longest == 0 {
			longest = 20 * ms // the default
		}
		if r.percent(40) && c.MinHold == 0 && longest > 0 {
			c.Linger = r.between(time.Microsecond, longest)
		}
	}
}

// Prompt is that plan without leases that linger, as a seed made it before.
func (p Plan) Prompt() Plan {
	q := p.Hinting()
	for i := range q.Clients {
		q.Clients[i].Linger = 0
	}
	return q
}

// Former is the plan without what was thought of later.
func (p Plan) Former() Plan {
	q := p.Prompt()
	q.Faults = slices.DeleteFunc(q.Faults, func(f Fault) bool { return f.Kind == Sleep })
	q.Fresh = false
	return q
}
