package contest

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/internal/redistest"
)

// The processes of a run are this binary again.
func TestMain(m *testing.M) {
	invite([]Guest{folders})
	if os.Getenv(childEnv) != "" {
		if err := child(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench process:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Every job runs for two short rounds of every peer that it is for, and what it
// says makes a table and a plot. Nothing here depends on how fast anything is.
func TestRun(t *testing.T) {
	redistest.NeedsControl(t, redistest.Redis8)
	few := []scenario{ // of each kind, smaller
		small(t, "one", 1, 1),
		small(t, "processes", 3, 1),
		small(t, "handover", 2, 1),
		small(t, "dead1", 1, 1),
		small(t, "holds", 1, 20),
		small(t, "waiters", 1, 20),
		small(t, "memory", 1, 1),
	}
	s := settings{rounds: 2, length: 50 * time.Millisecond, out: t.TempDir(), flavour: redistest.Redis8, log: t.Output()}
	for _, sc := range few {
		if err := measure(t.Context(), s, sc); err != nil {
			t.Fatalf("%s: %v", sc.name, err)
		}
	}
	all, err := load(s.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range few {
		for _, peer := range sc.peers {
			if n := len(all[sc.name][peer]); n != s.rounds {
				t.Errorf("%s: %s has %d rounds of %d", sc.name, peer, n, s.rounds)
			}
			for _, c := range sc.columns {
				counts := guest(peer) == nil || c != commands // a guest's server counts none
				if c.cell(all, sc, peer) == "–" && counts && sc.name != "handover" {
					t.Errorf("%s: %s has no %q", sc.name, peer, c.head)
				}
			}
		}
		for _, what := range []string{"violations", "stale", "failures"} {
			if v := all.values(sc.name, ours, what); len(v) > 0 && quantile(v, 1) > 0 {
				t.Errorf("%s: %v %s", sc.name, v, what)
			}
		}
	}
	if n := all.values("processes", bare, "cycles"); len(n) == 0 || quantile(n, 0) == 0 {
		t.Errorf("the bare client made %v cycles", n)
	}
	if table := markdown(all); !strings.Contains(table, "### 8 processes, one key") {
		t.Errorf("the table lacks a scenario:\n%s", table)
	}
	if svg := plot(all); !strings.Contains(svg, ">distmutex<") {
		t.Errorf("the plot lacks a peer:\n%s", svg)
	}
}

// small is a scenario with fewer processes, goroutines and peers.
func small(t *testing.T, name string, processes, goroutines int) scenario {
	chosen, err := choose(name)
	if err != nil {
		t.Fatal(err)
	}
	sc := chosen[0]
	sc.processes, sc.job.Goroutines, sc.length = processes, goroutines, 0
	sc.job.Settle = 0
	if name == "holds" { // long enough for a renewal
		sc.job.TTL, sc.length = 2*time.Second, 1500*time.Millisecond
		sc.peers = []string{ours}
	}
	if name == "processes" || name == "waiters" || name == "dead1" {
		sc.peers = []string{bare, ours}
	}
	return sc
}

// What the harness calls a violation is one.
func TestTwoInsideAreSeen(t *testing.T) {
	all, err := openChecks(filepath.Join(t.TempDir(), "shared"))
	if err != nil {
		t.Skip("not checked: ", err)
	}
	one := runner{l: numbered(7), check: all.of(0)}
	two := runner{l: numbered(7), check: all.of(0)}
	one.enter()
	two.enter()
	if one.violations != 0 || two.violations != 1 || one.stale != 0 || two.stale != 1 {
		t.Errorf("%d and %d violations, %d and %d stale tokens; want 0 and 1 of each", one.violations, two.violations, one.stale, two.stale)
	}
}

// numbered is a lock that anyone has, with a token.
type numbered int64

func (n numbered) Lock(context.Context) error { return nil }
func (n numbered) Unlock() error              { return nil }
func (n numbered) Token() int64               { return int64(n) }

func TestStatistics(t *testing.T) {
	v := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 2.5, 1: 4} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v of %v is %v, want %v", q, v, got, want)
		}
	}
	if !math.IsNaN(quantile(nil, 0.5)) {
		t.Error("the median of nothing is a number")
	}
}

// A ratio is of the same round, and one that was not measured is none.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	of := func(round int, rate float64) record {
		return record{Round: round, Values: map[string]float64{"rate": rate}}
	}
	a := results{"one": {
		ours: {of(1, 10), of(2, 30), of(3, 99)},
		bare: {of(1, 5), of(2, 10)},
	}}
	if got := a.ratios("one", ours, bare, "rate"); !slices.Equal(got, []float64{2, 3}) {
		t.Errorf("ratios %v, want 2 and 3", got)
	}
	if got := floorOf("one")(a, ours); got != 2.5 {
		t.Errorf("the goal sees %v, want 2.5", got)
	}
	if got := bestOf("free")(a, ours); !math.IsNaN(got) {
		t.Errorf("what was not measured is %v", got)
	}
}
