package sim_test

import (
	"flag"
	"testing"
	"time"

	"github.com/distmutex/distmutex/internal/sim"
)

var (
	replays = flag.Int64("replays", 400, "how many seeds TestReplay runs twice")
	many    = flag.Int64("many", 1000, "how many seeds TestManySchedules runs")
	soak    = flag.Duration("soak", 0, "how long TestSoak runs; zero: not at all")
)

const batch = 100 // seeds that a child runs

// The same seed makes the same events in the same instants.
func TestReplay(t *testing.T) {
	alone(t)
	all := shared(t, batch, "-twice", upTo(*first, *replays, batch))
	if int64(all.Schedules) < *replays {
		t.Errorf("%d seeds were run twice, want %d", all.Schedules, *replays)
	}
	for _, b := range all.Broken {
		t.Errorf("seed %d: %s: %s", b.Seed, b.Law, b.Text)
	}
}

// again runs a plan once more and compares.
func (s *tally) again(t *testing.T, p sim.Plan, r sim.Report) {
	if sim.Run(t, p, false).Hash == r.Hash {
		return
	}
	text := "two runs differ"
	a := sim.Run(t, p, true)
	for range 50 {
		if b := sim.Run(t, p, true); a.Hash != b.Hash {
			text += sim.Difference(a, b)
			break
		}
	}
	s.Broken = append(s.Broken, broken{p.Seed, "replay", text})
}

// All laws hold on thousands of schedules, without the race detector.
func TestManySchedules(t *testing.T) {
	alone(t)
	all := shared(t, batch, "-twice=false", upTo(*first+*replays, *many, batch))
	t.Log(all.String())
	judge(t, all)
}

// As many schedules as there is time for, on all cores: make soak.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("it takes as long as -soak says")
	}
	begun := time.Now()
	all := shared(t, batch, "-twice=false", during(*first, batch, *soak))
	t.Logf("%v\n%.0f schedules a second, from seed %d", &all, float64(all.Schedules)/time.Since(begun).Seconds(), *first)
	judge(t, all)
}

// alone skips a test that is none of one seed's.
func alone(t *testing.T) {
	t.Helper()
	if *seed != 0 {
		t.Skip("-seed runs TestSchedules alone")
	}
}
