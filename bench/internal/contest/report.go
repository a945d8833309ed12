package contest

import (
	"fmt"
	"slices"
	"strings"
)

// column is one figure of a table.
type column struct {
	head, key string
	unit      float64 // what it is divided by
	digits    int
	worst     bool // show the largest of all rounds too
	ratio     bool // to the scenario's first peer, round by round
}

var (
	rate       = column{head: "cycles/s", key: "rate", unit: 1}
	perFloor   = column{head: "× floor", key: "rate", unit: 1, digits: 2, ratio: true}
	commands   = column{head: "commands a cycle", key: "commands", unit: 1, digits: 1}
	allocs     = column{head: "allocations a cycle", key: "allocs", unit: 1, digits: 1}
	allocBytes = column{head: "bytes a cycle", key: "alloc bytes", unit: 1}
	jain       = column{head: "Jain", key: "jain", unit: 1, digits: 3}
	longest    = column{head: "longest wait, ms", key: "longest", unit: 1000, digits: 1, worst: true}

	median  = column{head: "median, µs", key: "cycle median", unit: 1}
	tail    = column{head: "99 %, µs", key: "cycle p99", unit: 1}
	slowest = column{head: "slowest, ms", key: "cycle max", unit: 1000, digits: 1, worst: true}
	first   = column{head: "first cycle of a round, ms", key: "first", unit: 1000, digits: 1, worst: true}

	handover     = column{head: "median, µs", key: "handover median", unit: 1}
	handoverTail = column{head: "99 %, µs", key: "handover p99", unit: 1}
	ping         = column{head: "PING, µs", key: "ping median", unit: 1}
	inPings      = column{head: "× PING", key: "in pings", unit: 1, digits: 1}
	rested       = column{head: "PING after as long a rest, µs", key: "rested ping median", unit: 1}
	inRested     = column{head: "× that", key: "in rested pings", unit: 1, digits: 1}

	goroutines     = column{head: "goroutines", key: "goroutines", unit: 1}
	heapEach       = column{head: "heap bytes each", key: "heap each", unit: 1}
	stackEach      = column{head: "stack bytes each", key: "stack each", unit: 1}
	renewals       = column{head: "renewals/s", key: "renewals", unit: 1}
	perRead        = column{head: "renewals a read of the server", key: "per read", unit: 1, digits: 2}
	clientCPU      = column{head: "client CPU a renewal, µs", key: "client cpu", unit: 1, digits: 1}
	serverCPU      = column{head: "server CPU a renewal, µs", key: "server cpu", unit: 1, digits: 1}
	waiterCommands = column{head: "commands a second and waiter", key: "waiter commands", unit: 1, digits: 3}

	perCycle   = column{head: "ns a cycle", key: "per cycle", unit: 1}
	timesFloor = column{head: "× channel", key: "per cycle", unit: 1, digits: 1, ratio: true}
)

func (c column) show(v float64) string { return fmt.Sprintf("%.*f", c.digits, v/c.unit) }

// cell is a median over the rounds, with the quartiles.
func (c column) cell(a results, sc scenario, peer string) string {
	values := a.values(sc.name, peer, c.key)
	if c.ratio {
		values = a.ratios(sc.name, peer, sc.peers[0], c.key)
	}
	if len(values) == 0 {
		return "–"
	}
	s := c.show(quantile(values, 0.5))
	if low, high := c.show(quantile(values, 0.25)), c.show(quantile(values, 0.75)); low != high {
		s += fmt.Sprintf(" (%s–%s)", low, high)
	}
	if c.worst {
		s += "; max " + c.show(quantile(values, 1))
	}
	return s
}

// markdown is the goals and, for each scenario, a table.
func markdown(a results) string {
	var s strings.Builder
	s.WriteString(goalTable(a))
	for _, sc := range scenarios {
		if len(a[sc.name]) == 0 {
			continue
		}
		fmt.Fprintf(&s, "\n### %s\n\n%s\n\n", sc.what, a.conditions(sc))
		row := []string{""}
		for _, c := range sc.columns {
			row = append(row, c.head)
		}
		writeRow(&s, row)
		s.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
		for _, peer := range sc.peers {
			if len(a[sc.name][peer]) == 0 {
				continue
			}
			row = []string{peer}
			for _, c := range sc.columns {
				row = append(row, c.cell(a, sc, peer))
			}
			writeRow(&s, row)
		}
	}
	return s.String()
}

func writeRow(s *strings.Builder, cells []string) {
	s.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// conditions says how a scenario was measured, and what went wrong in it.
func (a results) conditions(sc scenario) string {
	var loads, lengths []float64
	rounds, wrong := 0, []string{}
	for _, peer := range sc.peers {
		rounds = max(rounds, len(a[sc.name][peer]))
		sum := func(key string) float64 {
			total := 0.0
			for _, v := range a.values(sc.name, peer, key) {
				total += v
			}
			return total
		}
		for _, r := range a[sc.name][peer] {
			loads = append(loads, number(r.Load))
			lengths = append(lengths, r.Values["seconds"])
		}
		for _, what := range []string{"violations", "stale", "failures", "lost"} {
			if n := sum(what); n > 0 {
				wrong = append(wrong, fmt.Sprintf("%s: %.0f %s", peer, n, what))
			}
		}
	}
	if len(wrong) == 0 {
		wrong = []string{"no violations, no failures"}
	}
	return fmt.Sprintf("%d rounds of %.1f s; load average before them %.1f to %.1f; %s.",
		rounds, quantile(lengths, 0.5), slices.Min(loads), slices.Max(loads), strings.Join(wrong, "; "))
}
