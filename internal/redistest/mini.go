package redistest

import (
	"sync"
	"sync/atomic"
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
		m, ahead := miniredis.RunT(tb), new(atomic.Int64)
		m.Server().SetPreHook(Aging(m, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
		all = append(all, &Server{Addr: m.Addr(), Flavour: Miniredis, tb: tb, miniAhead: ahead})
	}
	return all
}

// Aging makes all keys as old as they are before each command, by a clock that the
// server shows too. A key then ages from no earlier than the arrival of the
// command that sets it, so however the machine stalls, it never expires before
// its term has passed for the sender. A ticker instead would charge a key that was
// set during a stall for all of it.
func Aging(m *miniredis.Miniredis, clock func() time.Time) server.Hook {
	var mu sync.Mutex
	var conns sync.Map // of *server.Peer
	last := clock()
	return func(c *server.Peer, _ string, _ ...string) bool {
		if _, known := conns.Load(c); !known {
			// A script's calls come here too, while miniredis is locked, from a
			// peer of their own that has a context from the start.
			if c.Ctx != nil {
				return false
			}
			conns.Store(c, nil)
			c.OnDisconnect(func() { conns.Delete(c) })
		}
		mu.Lock()
		defer mu.Unlock()
		now := clock()
		m.SetTime(now)
		m.FastForward(now.Sub(last))
		last = now
		return false
	}
}
