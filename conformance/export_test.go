package conformance

import "testing"

// IDs are the cases, in order.
func IDs() []string {
	var ids []string
	for _, c := range checks() {
		ids = append(ids, c.id)
	}
	return ids
}

// Rule returns the rule of a case.
func Rule(id string) string { return find(id).rule }

// Check runs one case against tb, which may be a recorder.
func Check(tb testing.TB, h Harness, id string) { find(id).on(tb, h.settled(), new(outcome)) }

func find(id string) check {
	for _, c := range checks() {
		if c.id == id {
			return c
		}
	}
	panic("no case " + id)
}

// Law returns the number of the law that a case is a part of.
func Law(id string) int { return find(id).law }

// NeedsFaults says that a case takes faults.
func NeedsFaults(id string) bool { return find(id).needs&faults != 0 }
