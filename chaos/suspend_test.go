package main

import (
	"testing"
	"time"

	"github.com/distmutex/distmutex/internal/redistest"
)

// A control. A machine sleeps for longer than a lease from when a lock is got there,
// and wakes: where validity counts by the clock that stood still, the holder goes
// on beside the next, and the harness sees it. Of ours it sees that it does not
// happen. F24.
func TestSuspendedHolderIsFound(t *testing.T) {
	f := redistest.Flavours()[0]
	for make, want := range map[string]bool{redlock: true, ours: false} {
		t.Run(make, func(t *testing.T) {
			t.Parallel()
			found, strikes := false, 0
			for seed := range 5 {
				c := small(t, f)
				c.Make, c.Seed, c.Only = make, uint64(seed), []string{"F24 client suspended as it comes in"}
				c.Clients, c.Keys, c.Long, c.Acquisitions, c.Least = 2, 1, 25, 1, 15*time.Second // time for some
				w := newWorld(t, c)
				w.start()
				if len(w.sleepers()) == 0 {
					t.Skip("not checked: no machine can be suspended")
				}
				r := w.run()
				found = found || len(r.twoIn) > 0
				strikes += r.faults[c.Only[0]]
				for _, failure := range r.failures() {
					t.Error(failure)
				}
				t.Logf("seed %d: two in %d times, %d suspensions", seed, len(r.twoIn), r.faults[c.Only[0]])
				if found || !want && strikes > 0 {
					break
				}
			}
			if found != want || strikes == 0 {
				t.Errorf("two holders found: %v, want %v, in %d suspensions", found, want, strikes)
			}
		})
	}
}
