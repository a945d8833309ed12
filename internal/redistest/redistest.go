// Package redistest runs tests on real Redis and Valkey servers: it finds them,
// starts as many as a test asks for on free loopback ports, and kills, freezes
// and wipes them on request. [Proxy] puts a faulty network in front of one.
//
// Servers come from, in this order:
//
//   - DISTMUTEX_REDIS_SERVERS=addr,addr,… : servers that run already. They are
//     lent to one test at a time and cannot be killed or frozen. Run packages
//     one after the other on them (go test -p 1): other processes would share
//     and wipe them.
//   - DISTMUTEX_REDIS_BIN, a folder of executables; without it the folder that
//     scripts/servers.sh fills in the user's cache, then PATH.
//
// Where there is none at all, tests run on miniredis, a simulation.
package redistest

import (
	"os"
	"slices"
	"testing"
)

// Flavour is a line of servers that differs from the others in its commands.
type Flavour string

const (
	Redis7  Flavour = "redis7"  // no compare-and-delete: scripts only
	Redis8  Flavour = "redis8"  // 8.4 or later: DELEX and SET IFEQ
	Valkey9 Flavour = "valkey9" // 9 or later: DELIFEQ and SET IFEQ

	// Miniredis stands in where there is no real server. It runs in the
	// test's process, on the real clock.
	Miniredis Flavour = "miniredis"
)

// Known lists the flavours of real servers that tests are to be run on.
func Known() []Flavour { return []Flavour{Redis7, Redis8, Valkey9} }

// Flavours lists the known flavours that were found here, and if there is none
// at all, Miniredis alone.
func Flavours() []Flavour {
	var all []Flavour
	for _, f := range Known() {
		if found().has(f) {
			all = append(all, f)
		}
	}
	if all == nil {
		all = []Flavour{Miniredis}
	}
	return all
}

// Each runs test as one subtest for each known flavour. A flavour that is not
// here is a skipped subtest, or a failed one if DISTMUTEX_REQUIRE_SERVERS is 1.
// If none is here, test runs on Miniredis instead; one that needs more than a
// simulation begins with [NeedsReal] or [NeedsControl].
func Each(t *testing.T, test func(t *testing.T, f Flavour)) {
	t.Helper()
	for _, f := range Known() {
		t.Run(string(f), func(t *testing.T) {
			if need(t, f) {
				test(t, f)
			}
		})
	}
	if slices.Contains(Flavours(), Miniredis) {
		t.Run(string(Miniredis), func(t *testing.T) {
			t.Log("no real server was found, so this ran on a simulation: a server's own commands, " +
				"its expiry and its order of requests were not checked")
			test(t, Miniredis)
		})
	}
}

// need skips or fails a test whose flavour is not here.
func need(tb testing.TB, f Flavour) bool {
	tb.Helper()
	switch {
	case f == Miniredis || found().has(f):
		return true
	case os.Getenv("DISTMUTEX_REQUIRE_SERVERS") == "1":
		tb.Fatalf("%s was not found, and DISTMUTEX_REQUIRE_SERVERS is 1: %s", f, found())
	default:
		tb.Skipf("nothing was checked on %s, which was not found: %s", f, found())
	}
	return false
}

// NeedsReal skips a test that would prove nothing on a simulation.
func NeedsReal(tb testing.TB, f Flavour) {
	tb.Helper()
	if f == Miniredis {
		tb.Skip("not checked: this takes a real server, and only miniredis is here")
	}
	need(tb, f)
}

// NeedsControl skips a test that kills, freezes or restarts servers where they
// are not this process's own.
func NeedsControl(tb testing.TB, f Flavour) {
	tb.Helper()
	NeedsReal(tb, f)
	if found().bins[f] == "" {
		tb.Skipf("not checked: this kills and freezes servers, and those in %s are not ours", serversEnv)
	}
}
