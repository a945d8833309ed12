package sim_test

import (
	"flag"
	"testing"

	"github.com/distmutex/distmutex/internal/sim"
)

var (
	seed  = flag.Int64("seed", 0, "the only seed to run; zero: as many as -schedules says")
	first = flag.Int64("first", 1, "the first seed")
	count = flag.Int64("schedules", 300, "how many seeds are run")
)

func TestSchedules(t *testing.T) {
	holds, stale, writes := 0, 0, 0
	lo, hi := *first, *first+*count
	if *seed != 0 {
		lo, hi = *seed, *seed+1
	}
	for s := lo; s < hi; s++ {
		r := sim.Run(t, sim.Make(s), *seed != 0)
		holds += r.Holds
		writes += r.Writes
		stale += r.Stale
		if *seed != 0 {
			for _, l := range r.Timeline {
				t.Log(l)
			}
		}
		for _, b := range r.Breaches {
			t.Errorf("seed %d (mode %d wild %d): %v", s, sim.Make(s).Mode, sim.Make(s).Wild, b)
		}
	}
	t.Logf("%d holds, %d writes, %d of them stale", holds, writes, stale)
}
