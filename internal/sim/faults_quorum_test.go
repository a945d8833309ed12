package sim_test

import (
	"slices"

	"github.com/distmutex/distmutex/internal/sim"
)

const (
	quorumGo  = "backend/quorum/quorum.go"
	acquireGo = "backend/quorum/acquire.go"
	renewGo   = "backend/quorum/renew.go"
	nodeGo    = "internal/sim/node.go"
)

var faults = slices.Concat(votes, tokens, releases, holds, turns, lingers, asleep)

// votes are faults in how answers are counted.
var votes = []fault{
	{"half of the nodes are enough", sim.Exclusion, 300, []edit{
		{quorumGo, "q := &Backend{need: len(nodes)/2 + 1,", "q := &Backend{need: max(1, len(nodes)/2),"},
	}},
	{"a majority of the nodes that answer is enough", sim.Exclusion, 300, []edit{
		{acquireGo, "func (b *ballot) defeat() error {\n", `func (b *ballot) need() int {
	few := 0
	for _, s := range b.seats {
		if s.asked || s.granted || errors.Is(s.err, backend.ErrHeld) {
			few++
		}
	}
	return min(b.q.need, few/2+1)
}

func (b *ballot) defeat() error {
`},
		{acquireGo, "	if granted < b.q.need {\n", "	if granted < b.need() {\n"},
		{acquireGo, "return b.aiming && at >= b.q.need", "return b.aiming && at >= b.need()"},
		{acquireGo, "ends[b.q.need-1]", "ends[b.need()-1]"},
		{acquireGo, "	need := b.q.need\n", "	need := b.need()\n"},
	}},
	{"an error counts as a grant", sim.Exclusion, 300, []edit{
		{acquireGo, "	if v.err != nil {\n		return\n	}\n	start :=", `	if v.err != nil && !errors.Is(v.err, backend.ErrHeld) {
		s.granted, s.token, s.until = true, b.token, b.want.Start.Add(b.want.TTL)
	}
	if v.err != nil {
		return
	}
	start :=`},
	}},
	{"one node is enough to renew", sim.Validity, 300, []edit{
		{renewGo, "case agreed >= p.q.need:", "case agreed >= 1:"},
	}},
	{"one refusal is definite", sim.Truth, 300, []edit{
		{acquireGo, "if refused >= need || answers >= need && !b.told {", "if answers > 0 {"},
	}},
	{"one node's loss is definite", sim.Truth, 300, []edit{
		{renewGo, "case lost > len(p.nodes)-p.q.need:", "case lost > 0:"},
	}},
	{"no answer is a good one", sim.Validity, 300, []edit{
		{renewGo, "			return p.failed(nil)\n", "			return nil\n"},
	}},
	{"a node that forgot counts at once", sim.Exclusion, 1500, []edit{
		{nodeGo, "n.w.plan.Wild != Forgetful && n.w.now() < until", "false && n.w.now() < until"},
	}},
	{"a node whose clock leapt counts", sim.Exclusion, 3000, []edit{
		{"backend/quorum/uncounted.go", "if own.ahead-median.ahead <= own.within+median.within {", "if _ = median; true {"},
		{"internal/sim/clock.go", "low-d.watch.high > allowed", "allowed < 0"},
	}},
	{"nodes set aside are never asked", sim.Progress, 1000, []edit{
		{"backend/quorum/verify.go", "return used < q.need", "return used < 0"},
		{"backend/quorum/node.go", "	n.probing, n.probed = true, now\n	return true, nil\n", "	return false, &backend.Error{Op: op, Key: key, Node: n.name, Err: &asideError{n.last}}\n"},
	}},
}

// tokens are faults in how the token is chosen.
var tokens = []fault{
	{"no raise", sim.Tokens, 1000, []edit{
		{acquireGo, "		if s.granted && s.token == b.token {\n			at++", "		if s.granted {\n			at++"},
		{acquireGo, "		if s.granted && s.token == b.token {\n			ends", "		if s.granted {\n			ends"},
	}},
	{"the token of one node", sim.Tokens, 1000, []edit{
		{acquireGo, "			top = max(top, s.token)\n", "			top = s.token\n"},
		{acquireGo, "		if s.granted && s.token == b.token {\n			at++", "		if s.granted {\n			at++"},
		{acquireGo, "		if s.granted && s.token == b.token {\n			ends", "		if s.granted {\n			ends"},
	}},
	{"the resource takes any token", sim.Fence, 1500, []edit{
		{"fencing/gate.go", "if token < g.largest {", "if false {"},
	}},
	{"nodes forget their counters with the lock", sim.Tokens, 1000, []edit{
		{nodeGo, "	*c = counter{token, max(c.ends, now+term+n.w.plan.Life)}\n", "	*c = counter{token, now + term}\n"},
		{nodeGo, "near := max(min(hint, Stamp(now+reach)), Stamp(now-reach))", "near := hint"},
	}},
	{"clocks of clients are believed", sim.Tokens, 300, unclamped},
}

// releases are faults in how what is not needed is given back.
var releases = []fault{
	{"released by name", sim.Exclusion, 100, []edit{
		{nodeGo, "	case l.owner != o:\n		r.status = no\n", ""},
	}},
	{"only what was granted is released", sim.Quiet, 300, []edit{
		{acquireGo, "		if !errors.Is(s.err, backend.ErrHeld) {\n			nodes = append", "		if s.granted {\n			nodes = append"},
	}},
	{"nothing is released after an attempt was cancelled", sim.Quiet, 300, []edit{
		{"mutex/attempt.go", "		if a.owed {\n			a.s.abandon", "		if false {\n			a.s.abandon"},
	}},
	{"a release overtakes its acquire", sim.Quiet, 300, []edit{
		{"backend/quorum/lane.go", "		<-v.before[node]\n", ""},
	}},
	{"an acquire is granted behind its release", sim.Quiet, 300, []edit{
		{nodeGo, "	case n.buried(o):\n", "	case false:\n"},
	}},
	{"what was given back is asked for again", sim.Protocol, 300, []edit{
		{retryGo, "	return errors.Is(err, backend.ErrHeld) || errors.Is", "	return errors.Is"},
	}},
	{"an owner is used again after its release", sim.Protocol, 300, []edit{
		{"mutex/attempt.go", "	a.want.Owner = a.s.owners.next()\n	if a.s.waiter", "	if a.s.waiter"},
	}},
	{"what waits for its turn is renewed behind its release", sim.Protocol, 2500, []edit{
		{renewGo, "	if n.isOver(p.votes, v) {\n", "	if false {\n"},
	}},
	{"a release has no effect on what waits for its turn", sim.Quiet, 1000, []edit{
		{acquireGo, "if n.isOver(b.votes, visit) {", "if false {"},
		{"backend/quorum/lane.go", "		<-v.before[node]\n", ""},
	}},
}
