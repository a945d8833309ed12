package contest

import (
	"fmt"
	"math"
	"strings"
)

// figure is what came of a goal for one of our peers. NaN: not measured.
type figure func(a results, us string) float64

// goal is a figure that has a limit.
type goal struct {
	what, want string
	reached    figure

	limit   float64
	atLeast bool // else at most
	digits  int
}

var goals = []goal{
	{"1 goroutine, free key", "≥ 0.95 × the two plain commands", floorOf("one"), 0.95, true, 2},
	{"64 goroutines, free keys", "≥ 4 × the two plain commands", floorOf("free"), 4, true, 2},
	{"", "≥ 2 × the best peer", bestOf("free"), 2, true, 2},
	{"32 goroutines, one key, one process", "≥ 100 × the best peer", bestOf("local"), 100, true, 2},
	{"", "Jain ≥ 0.99", medianOf("local", "jain", 1), 0.99, true, 3},
	{"", "longest wait under 50 ms", worstOf("local", "longest", 1000), 50, false, 1},
	{"8 processes, one key", "≥ 1 × the fastest peer", bestOf("processes"), 1, true, 2},
	{"", "Jain ≥ 0.99", medianOf("processes", "jain", 1), 0.99, true, 3},
	{"", "longest wait under 50 ms", worstOf("processes", "longest", 1000), 50, false, 1},
	{"64 processes, 5 ms hold", "≥ 190 cycles/s", medianOf("hold", "rate", 1), 190, true, 0},
	{"", "≤ 8 commands a cycle", medianOf("hold", "commands", 1), 8, false, 1},
	{"", "longest wait ≤ 480 ms", worstOf("hold", "longest", 1000), 480, false, 0},
	{"512 waiters", "no more commands a cycle than 64 (ratio)", crowding, 1, false, 2},
	{"hand-over", "median ≤ 3 × the median PING", medianOf("handover", "in pings", 1), 3, false, 1},
	{"5 nodes, 1 goroutine", "≥ 0.9 × a bare majority", floorOf("nodes"), 0.9, true, 2},
	{"5 nodes, one dead", "median ≤ 1.2 × healthy", sick("dead1", "cycle median"), 1.2, false, 2},
	{"", "99 % ≤ 3 × healthy", sick("dead1", "cycle p99"), 3, false, 2},
	{"5 nodes, two dead", "median ≤ 1.2 × healthy", sick("dead2", "cycle median"), 1.2, false, 2},
	{"", "99 % ≤ 3 × healthy", sick("dead2", "cycle p99"), 3, false, 2},
	{"5 nodes, one frozen", "median ≤ 1.2 × healthy", sick("frozen1", "cycle median"), 1.2, false, 2},
	{"", "99 % ≤ 3 × healthy", sick("frozen1", "cycle p99"), 3, false, 2},
	{"5 nodes, two frozen", "median ≤ 1.2 × healthy", sick("frozen2", "cycle median"), 1.2, false, 2},
	{"", "99 % ≤ 3 × healthy", sick("frozen2", "cycle p99"), 3, false, 2},
	{"10,000 holds", "O(1) goroutines: under 600 here", worstOf("holds", "goroutines", 1), 600, false, 0},
	{"", "under 2 KiB of heap and stack a hold", both("holds"), 2048, false, 0},
	{"", "renewals pipelined: over 1 a read of the server", medianOf("holds", "per read", 1), 1, true, 2},
	{"a waiter, all for one key", "under 1 KiB of heap", medianOf("waiters", "heap each", 1), 1024, false, 0},
	{"a waiter, each for its own key", "under 1 KiB of heap", medianOf("waiters-keys", "heap each", 1), 1024, false, 0},
	{"memory, uncontended", "< 20 × a one-slot channel", inMemory(func(a results) []float64 {
		return a.ratios("memory", memoryPeer, channelPeer, "per cycle")
	}), 20, false, 1},
	{"", "≤ 4 allocations", inMemory(func(a results) []float64 { return a.values("memory", memoryPeer, "allocs") }), 4.1, false, 1},
}

func medianOf(scenario, key string, unit float64) figure {
	return func(a results, us string) float64 { return quantile(a.values(scenario, us, key), 0.5) / unit }
}

func worstOf(scenario, key string, unit float64) figure {
	return func(a results, us string) float64 { return quantile(a.values(scenario, us, key), 1) / unit }
}

func both(scenario string) figure {
	return func(a results, us string) float64 {
		return quantile(a.values(scenario, us, "heap each"), 0.5) + quantile(a.values(scenario, us, "stack each"), 0.5)
	}
}

// floorOf is our rate as a multiple of the two plain commands'.
func floorOf(scenario string) figure {
	return func(a results, us string) float64 { return quantile(a.ratios(scenario, us, bare, "rate"), 0.5) }
}

// bestOf is our rate as a multiple of the best peer's: the smallest of the
// multiples.
func bestOf(scenario string) figure {
	return func(a results, us string) float64 {
		least := math.NaN()
		for peer := range a[scenario] {
			if m := quantile(a.ratios(scenario, us, peer, "rate"), 0.5); peer != ours && peer != oursLingering && peer != bare && !(m >= least) {
				least = m
			}
		}
		return least
	}
}

// sick compares a quorum with sick nodes with a healthy one.
func sick(scenario, key string) figure {
	return func(a results, us string) float64 {
		return quantile(a.values(scenario, us, key), 0.5) / quantile(a.values("nodes", us, key), 0.5)
	}
}

func crowding(a results, us string) float64 {
	return quantile(a.values("crowd", us, "commands"), 0.5) / quantile(a.values("hold", us, "commands"), 0.5)
}

// inMemory is what there is of the memory backend, where nothing lingers.
func inMemory(of func(results) []float64) figure {
	return func(a results, us string) float64 {
		if us != ours {
			return math.NaN()
		}
		return quantile(of(a), 0.5)
	}
}

func (g goal) met(v float64) bool {
	if g.atLeast {
		return v >= g.limit
	}
	return v <= g.limit
}

func goalTable(a results) string {
	var s strings.Builder
	s.WriteString("| | goal | reached | | lingering | |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, g := range goals {
		v, verdict := g.judge(a, ours, "not measured")
		w, second := g.judge(a, oursLingering, "")
		writeRow(&s, []string{g.what, g.want, v, verdict, w, second})
	}
	return s.String()
}

// judge says how far a peer of ours came, and whether that is enough.
func (g goal) judge(a results, us, unknown string) (text, verdict string) {
	v := g.reached(a, us)
	switch {
	case math.IsNaN(v):
		return unknown, ""
	case g.met(v):
		verdict = "met"
	default:
		verdict = "**missed**"
	}
	return fmt.Sprintf("%.*f", g.digits, v), verdict
}
