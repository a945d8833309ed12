package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// printTable writes what was found, as README and doc/evidence.md show it.
func printTable(out io.Writer, all []summary) {
	fmt.Fprintln(out, "| client | mode | servers | acquisitions | faults | two in (longest) | updates lost | stale accesses refused | other laws broken |")
	fmt.Fprintln(out, "|---|---|---|--:|--:|---|--:|--:|--:|")
	for _, s := range all {
		two := fmt.Sprint(s.TwoIn + s.TwoInUnpromised)
		if s.TwoIn+s.TwoInUnpromised > 0 {
			two += " (" + s.Longest + ")"
		}
		lost, refused := fmt.Sprint(s.Lost), "– (no tokens)"
		if isOurs(s.Make) {
			refused = fmt.Sprint(s.Refused)
		}
		fmt.Fprintf(out, "| %s | %s | %d × %s | %d | %d | %s | %s | %s | %d |\n",
			s.Make, s.Mode, s.Nodes, s.Flavour, s.Granted, sum(s.Faults), two, lost, refused, len(s.Laws)+len(s.Problems))
	}
	fmt.Fprintln(out, "\n| fault | times |\n|---|--:|")
	counts := make(map[string]int)
	for _, s := range all {
		for f, n := range s.Faults {
			counts[f] += n
		}
	}
	for _, f := range slices.SortedFunc(maps.Keys(counts), byNumber) {
		fmt.Fprintf(out, "| %s | %d |\n", f, counts[f])
	}
}

// byNumber sorts faults as the catalogue does.
func byNumber(a, b string) int {
	number := func(s string) (n int) {
		fmt.Sscanf(s, "F%d", &n)
		return n
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b))
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
