package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/distmutex/distmutex/internal/redistest"
)

// TestMain is a client process, if it is told to be.
func TestMain(m *testing.M) {
	logging.Disable()
	if text := os.Getenv(clientEnv); text != "" {
		if err := clientMain(text); err != nil {
			fmt.Fprintln(os.Stderr, "chaos client:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// small is a run that fits into a test.
func small(t *testing.T, f redistest.Flavour) config {
	redistest.NeedsControl(t, f)
	return config{
		Flavour: f, Nodes: 5, Make: ours, Mode: minority, Seed: 1, Acquisitions: 20, Least: 5 * time.Second, Limit: 2 * time.Minute,
		Clients: 4, Workers: 2, Keys: 3, Long: 20, TTL: 2 * time.Second, Dir: t.TempDir() + "/out",
	}
}

// All laws hold on real servers while everything that can go wrong does.
func TestLawsHoldUnderFaults(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		for _, nodes := range []int{5, 1} {
			t.Run(fmt.Sprint(nodes), func(t *testing.T) {
				t.Parallel()
				c := small(t, f)
				if c.Nodes = nodes; nodes == 1 {
					c.Workers, c.Long = 4, 2 // more that stand in line
				}
				holdLaws(t, c)
			})
		}
	})
}

func holdLaws(t *testing.T, c config) {
	r := run(t, c)
	for _, failure := range r.failures() {
		t.Error(failure)
	}
	if r.granted == 0 || sum(r.faults) == 0 {
		t.Errorf("%d acquisitions under %d faults: nothing was shown", r.granted, sum(r.faults))
	}
	t.Logf("%d acquisitions, %d faults, %d stale accesses refused", r.granted, sum(r.faults), r.seen.Stale)
}
