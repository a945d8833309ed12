package sim_test

import "github.com/distmutex/distmutex/internal/sim"

// asleep are faults in what is made of a machine's sleep.
var asleep = []fault{
	{"boot time is ignored", sim.Exclusion, 300, []edit{
		{termGo, "	if d := m.at(now) - t.slept; d >= noticed {\n", "	if d := m.at(now) - t.slept; d < 0 {\n"},
	}},
	{"a grant does not know of a sleep on its way", sim.Told, 1000, []edit{
		{termGo, "	t := term{lease: a.want, slept: a.slept}\n", "	t := term{lease: a.want, slept: a.s.meter.at(time.Now())}\n"},
	}},
}
