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
// What a server does when it crashes, loses messages or moves its clock is checked
// where the harness offers these Faults. A run ends with a report of the laws that
// held and of those that were not checked. It gives no false alarm: where a
// machine stalls so that nothing can be judged, a case says that instead.
package conformance

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Harness says how to make the backend under test, and what it does not promise.
// Only New is required.
type Harness struct {
	// New returns a client of the backend, and leaves to t.Cleanup what has to
	// be closed. Each case calls it once, and once more for each client that is
	// to end before the case does: t is the client's own then, and no *testing.T.
	// The store behind may be new each time or one for all, a server that others
	// use as well: the keys are unique.
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
	Unfenced bool // tokens are zero, or mean nothing
	NoExpiry bool // a lease ends by Release alone

	// Faults are what the harness can do to the store and to the network.
	Faults Faults

	// Term is what a case asks for where a term has to pass; zero means 200 ms.
	// Late is how much longer than its term a key may be held, to be waited for
	// besides. Both are for servers that think in seconds: it is safe to free a
	// key late, never early.
	Term, Late time.Duration

	// Dir is where the report is written, as JSON, and a picture of each case
	// that fails. Empty: the folder that DISTMUTEX_CONFORMANCE_DIR names, if set.
	Dir string

	// Seed is what random cases begin with, to repeat a run; in a bubble that
	// repeats most of it. Zero: DISTMUTEX_CONFORMANCE_SEED, or if that is not set
	// a new one each time. A case that fails prints it.
	Seed uint64
}

// settled is the harness with its defaults.
func (h Harness) settled() Harness {
	h.Dir = cmp.Or(h.Dir, os.Getenv("DISTMUTEX_CONFORMANCE_DIR"))
	if h.Seed == 0 {
		h.Seed, _ = strconv.ParseUint(os.Getenv("DISTMUTEX_CONFORMANCE_SEED"), 10, 64)
	}
	h.Seed = cmp.Or(h.Seed, rand.Uint64N(1_000_000_000)+1)
	h.Term = cmp.Or(h.Term, short)
	return h
}

// Run checks every case as a subtest named by its id and returns when all have
// ended. Use -run with an id to see one alone: -run 'TestConformance/term/ends'.
//
// It ends with a report, which -v shows and Harness.Dir keeps: which of the
// laws of distmutex were seen to hold, which could not be checked and why. A
// case that the harness itself skips, though it claims what the case needs,
// fails the test.
//
// Terms that have to pass are short. Where the machine stalls for longer than
// one, the case notices by its own clock and repeats the scenario with a longer
// term; it never blames the backend for it.
func Run(t *testing.T, h Harness) {
	h = h.settled()
	r := newReport(t, h)
	// One group after the other: so Run returns after the last of the cases,
	// though those of one group run in parallel.
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) { g.run(t, h, r) })
	}
	r.end(t, h)
}

// group is the cases whose ids begin with its name.
type group struct {
	name  string
	cases []check
}

func groups() (all []group) {
	for _, c := range checks() {
		name, _, _ := strings.Cut(c.id, "/")
		i := slices.IndexFunc(all, func(g group) bool { return g.name == name })
		if i < 0 {
			i, all = len(all), append(all, group{name: name})
		}
		all[i].cases = append(all[i].cases, c)
	}
	return all
}

func (g group) run(t *testing.T, h Harness, r *report) {
	for _, c := range g.cases {
		_, name, _ := strings.Cut(c.id, "/")
		t.Run(name, func(t *testing.T) {
			if h.Around == nil && c.needs&faults == 0 {
				t.Parallel()
			}
			o := &outcome{ID: c.id, Rule: c.rule, law: c.law, Result: notChecked}
			began := time.Now()
			defer func() {
				o.Seconds = time.Since(began).Seconds()
				r.add(o)
			}()
			if h.Around == nil {
				c.on(t, h, o)
				return
			}
			h.Around(t, func(t *testing.T) { c.on(t, h, o) })
		})
	}
}

// check is one case.
type check struct {
	id   string // group/name
	law  int
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
	losing
	holding
	pausing
	sickness
	crashing
	forgetting
	clock
	faults = losing | holding | pausing | sickness | crashing | forgetting | clock
)

// checks is the table.
func checks() []check {
	return slices.Concat(
		exclusionChecks, keyChecks, acquireChecks, termChecks, renewChecks, releaseChecks,
		tokenChecks, raiseChecks, inputChecks, errorChecks, cancelChecks, waitChecks, lineChecks, historyChecks,
		lostChecks, lateChecks, endingChecks, outageChecks,
	)
}

// on runs the case against the backend of h, and says in o what came of it.
func (c check) on(tb testing.TB, h Harness, o *outcome) {
	tb.Helper()
	t := newTrial(tb, h, c)
	defer t.tidy()
	o.backend = fmt.Sprintf("%T", raw(t.b))
	if o.Why = c.missing(t); o.Why != "" {
		if seen := unclaimed[c.id]; seen != nil {
			o.works = seen(t)
		}
		t.Skip("not checked: " + o.Why)
	}
	defer func() {
		switch {
		case tb.Failed():
			o.Result = broken
		case !tb.Skipped():
			o.Result = held
		}
	}()
	c.run(t)
}

// missing is what keeps a case from being run.
func (n needs) missing(t *trial) string {
	switch {
	case n&fencing != 0 && t.h.Unfenced:
		return "the harness says that the backend is Unfenced"
	case n&expiry != 0 && t.h.NoExpiry:
		return "the harness says that the backend has NoExpiry"
	case n&waiting != 0 && t.waiter(t.b) == nil:
		return "the backend has no Waiter"
	}
	return t.h.Faults.missing(n, t.h.Peer != nil)
}
