// Package conformance checks that a backend keeps the contract of package
// backend. It is a table of cases, each with an id that does not change and the
// rule that it checks; a case that fails prints its rule first.
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			New: func(t testing.TB) backend.Backend { return mine.New(dial(t)) },
//		})
//	}
//
// What it cannot check from outside is what a server does when it crashes, loses
// messages or moves its clock. A backend that passes still needs tests for these.
package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Harness says how to make the backend under test, and what it does not promise.
// Only New is required.
type Harness struct {
	// New returns a client of the backend, and leaves to t.Cleanup what has to
	// be closed. Each case calls it once. The store behind may be new each time
	// or one for all, a server that others use as well: the keys are unique.
	New func(t testing.TB) backend.Backend

	// Peer returns another client of the store behind b, as another process
	// would have it: its own connections, no state shared. With one store for
	// all it is the same function as New, but for its second argument. Nil: b
	// plays both parts.
	Peer func(t testing.TB, b backend.Backend) backend.Backend

	// Around runs a case; testing/synctest.Test as it stands runs each in a
	// bubble, in which waiting costs no time. New is called inside. Nil: cases
	// take real time, some seconds in all, and run in parallel.
	Around func(t *testing.T, run func(t *testing.T))

	// What the backend does not have. The cases that need it are skipped, in
	// words. A backend without a backend.Waiter needs no field to say so.
	Unfenced bool // all tokens are zero
	NoExpiry bool // a lease ends by Release alone

	// Term is what a case asks for where a term has to pass; zero means 200 ms.
	// Late is how much longer than its term a key may be held, to be waited for
	// besides. Both are for servers that think in seconds: it is safe to free a
	// key late, never early.
	Term, Late time.Duration
}

// Run checks every case as a subtest named by its id and returns when all have
// ended. Use -run with an id to see one alone: -run 'TestConformance/term/ends'.
//
// Terms that have to pass are short. Where the machine stalls for longer than
// one, the case notices by its own clock and repeats the scenario with a longer
// term; it never blames the backend for it.
func Run(t *testing.T, h Harness) {
	var groups []string
	members := make(map[string][]check)
	for _, c := range checks() {
		g, _, _ := strings.Cut(c.id, "/")
		if members[g] == nil {
			groups = append(groups, g)
		}
		members[g] = append(members[g], c)
	}
	// One group after the other: so Run returns after the last of the cases,
	// though those of one group run in parallel.
	for _, g := range groups {
		t.Run(g, func(t *testing.T) { runGroup(t, h, members[g]) })
	}
}

func runGroup(t *testing.T, h Harness, cs []check) {
	for _, c := range cs {
		_, name, _ := strings.Cut(c.id, "/")
		t.Run(name, func(t *testing.T) {
			if h.Around == nil {
				t.Parallel()
				c.on(t, h)
				return
			}
			h.Around(t, func(t *testing.T) { c.on(t, h) })
		})
	}
}

// check is one case.
type check struct {
	id   string // group/name
	rule string // what is checked, in one sentence
	needs
	run func(*trial)
}

// needs is what a case asks of the backend.
type needs int

const (
	fencing needs = 1 << iota
	expiry
	waiting
)

// checks is the table.
func checks() []check {
	var all []check
	for _, part := range [][]check{
		exclusionChecks, keyChecks, acquireChecks, termChecks, renewChecks, releaseChecks,
		tokenChecks, raiseChecks, inputChecks, errorChecks, cancelChecks, waitChecks, lineChecks,
	} {
		all = append(all, part...)
	}
	return all
}

// on runs the case against the backend of h.
func (c check) on(tb testing.TB, h Harness) {
	tb.Helper()
	t := newTrial(tb, h, c)
	defer t.tidy()
	switch {
	case c.needs&fencing != 0 && h.Unfenced:
		t.Skip("not checked: the harness says that the backend is Unfenced")
	case c.needs&expiry != 0 && h.NoExpiry:
		t.Skip("not checked: the harness says that the backend has NoExpiry")
	case c.needs&waiting != 0 && t.waiter(t.b) == nil:
		t.Skip("not checked: the backend has no Waiter")
	}
	c.run(t)
}
