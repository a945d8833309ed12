package redistest

import (
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// startMini starts simulated servers. Their keys expire as time passes, which
// miniredis leaves to its user.
func startMini(tb testing.TB, n int) []*Server {
	tb.Helper()
	var all []*Server
	for range n {
		m := miniredis.RunT(tb)
		m.Server().SetPreHook(aging(m))
		all = append(all, &Server{Addr: m.Addr(), Flavour: Miniredis, tb: tb})
	}
	return all
}

// aging makes all keys as old as they are before each command. A key then ages
// from no earlier than the arrival of the command that sets it, so however the
// machine stalls, it never expires before its term has passed for the sender.
// A ticker instead would charge a key that was set during a stall for all of it.
func aging(m *miniredis.Miniredis) server.Hook {
	var mu sync.Mutex
	last := time.Now()
	return func(*server.Peer, string, ...string) bool {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		m.FastForward(now.Sub(last))
		last = now
		return false
	}
}
