package sim_test

import (
	"flag"
	"testing"

	"github.com/distmutex/distmutex/internal/sim"
)

var replays = flag.Int64("replays", 100, "how many seeds TestReplay runs twice")

// The same seed makes the same events in the same instants.
func TestReplay(t *testing.T) {
	for s := *first; s < *first+*replays; s++ {
		a, b := sim.Run(t, sim.Make(s), false), sim.Run(t, sim.Make(s), false)
		if a.Hash != b.Hash {
			t.Errorf("seed %d: trace %x, then %x%s", s, a.Hash, b.Hash, difference(t, s))
		}
	}
}

// difference shows where two runs of a seed part, if they do once more.
func difference(t *testing.T, seed int64) string {
	a := sim.Run(t, sim.Make(seed), true)
	for range 50 {
		b := sim.Run(t, sim.Make(seed), true)
		if a.Hash != b.Hash {
			return sim.Difference(a, b)
		}
	}
	return ""
}
