package sim_test

import "github.com/distmutex/distmutex/internal/sim"

const (
	holdGo     = "mutex/hold.go"
	handoverGo = "mutex/handover.go"
	termGo     = "mutex/term.go"
)

// holds are faults in how long a hold lasts.
var holds = []fault{
	{"validity counts from the answer", sim.Validity, 300, []edit{
		{"mutex/attempt.go", "	if got.Start.IsZero() || got.Start.After(a.want.Start) {\n		got.Start = a.want.Start\n	}\n	return a.term(got), nil", "	got.Start = time.Now()\n	return a.term(got), nil"},
	}},
	{"a renewed term counts from the answer", sim.Validity, 300, []edit{
		{"mutex/renew.go", "		h.misses, h.miss = 0, nil\n", "		h.misses, h.miss = 0, nil\n		t.lease.Start = now\n"},
	}},
	{"no allowance for drift", sim.Validity, 300, []edit{
		{"backend/lease.go", "return ttl/100 + 2*time.Millisecond", "return 0"},
	}},
	{"a grant is not looked at again when it comes", sim.Truth, 2000, []edit{
		{termGo, "	if min(valid.Sub(now), a.limit.Sub(now)) <= lead {\n", "	if false {\n"},
	}},
	{"a hint is taken for a grant", sim.Exclusion, 300, []edit{
		{"backend/quorum/wait.go", "	return hint, nil\n", "	want.Ticket, want.Token = p.String(), backend.Token(time.Now().UnixMicro())\n	return want, nil\n"},
	}},
	{"a hold does not end with its validity", sim.Told, 300, []edit{
		{holdGo, "!h.over && !now.Before(end.Add(-lead))", "!h.over && !now.Before(end.Add(time.Second))"},
		{"mutex/renew.go", "	h.s.agenda.set(h, at)\n", "	if soon := time.Now().Add(time.Millisecond); at.Before(soon) {\n		at = soon\n	}\n	h.s.agenda.set(h, at)\n"},
	}},
	{"a hold has no longest time", sim.Told, 300, []edit{
		{holdGo, "	if valid.After(h.limit) {\n", "	if false {\n"},
	}},
	{"renewals go on after Unlock", sim.Protocol, 300, []edit{
		{holdGo, "	h.renewAt = time.Time{}\n	h.s.agenda.drop(h)\n", "	if h.err != nil {\n		h.renewAt = time.Time{}\n		h.s.agenda.drop(h)\n	}\n"},
		{"mutex/renew.go", "	if h.over {\n		h.afterwards()\n", "	if h.over && h.err != nil {\n		h.afterwards()\n"},
		{"mutex/renew.go", "	h.queued = false\n	now := time.Now()\n	valid := h.expire(now)\n	if h.over {\n", "	h.queued = false\n	now := time.Now()\n	valid := h.expire(now)\n	if h.over && h.err != nil {\n"},
		{"mutex/renew.go", "	h.s.agenda.set(h, at)\n", "	if soon := time.Now().Add(time.Millisecond); at.Before(soon) {\n		at = soon\n	}\n	h.s.agenda.set(h, at)\n"},
	}},
	{"the least time is not kept", sim.Exclusion, 1500, []edit{
		{"mutex/unlock.go", "	case now.Before(kept):\n", "	case false:\n"},
	}},
	{"the end of a context is not looked at", sim.Truth, 300, []edit{
		{acquireGo, "		case <-b.ctx.Done():\n			return backend.Lease{}, b.q.failed(\"acquire\", b.want.Key, b.ctx.Err())\n", ""},
	}},
}

// turns are faults in how a lease is passed from one goroutine to the next.
var turns = []fault{
	{"the next turn has the same token", sim.Tokens, 500, []edit{
		{handoverGo, "		later.next++\n", "		later.next = token\n"},
		{termGo, "		first.next++\n", ""},
	}},
	{"a lease is handed on past its validity", sim.Truth, 3000, []edit{
		{handoverGo, "|| !s.lasts(h.term, left):", ":"},
		{termGo, "	if min(valid.Sub(now), a.limit.Sub(now)) <= lead {\n", "	if false {\n"},
	}},
	{"a turn takes tokens that were never got", sim.Truth, 500, []edit{
		{handoverGo, "	if later.next > a.want.Token &&", "	if false &&"},
	}},
	{"validity counts from the raise", sim.Validity, 500, []edit{
		{handoverGo, "	later.raises++\n", "	later.raises++\n	t.lease.Start = now\n"},
	}},
	{"a lease that is handed on is released", sim.Protocol, 500, []edit{
		{handoverGo, "	if g.next(h) {\n		h.owed = false\n", "	if g.next(h) {\n		s.work++\n		go func() { defer s.end(); _ = s.b.Release(context.Background(), h.term.lease) }()\n"},
	}},
}

// lingers are faults in how a lease waits for the session's next goroutine.
var lingers = []fault{
	{"what lingered is released from whoever took it", sim.Validity, 500, []edit{
		{handoverGo, "		g.kept = nil\n		s.agenda.drop(h)\n", "		g.kept = nil\n"},
		{handoverGo, "	mine := h.gate.kept == h\n", "	mine := true\n"},
	}},
	{"what lingers is taken twice", sim.Tokens, 500, []edit{
		{handoverGo, "		g.kept = nil\n", ""},
	}},
	{"what lingers is never released", sim.Quiet, 500, []edit{
		{handoverGo, "		s.abandon(h.base(), h.term.lease, nil)\n		s.end()\n", "		s.end()\n"},
	}},
	{"Close leaves what lingers", sim.Quiet, 500, []edit{
		{"mutex/session.go", "cmp.Or(g.holder, s.unkeep(g))", "cmp.Or(g.holder, nil)"},
	}},
}
