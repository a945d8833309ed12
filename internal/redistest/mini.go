package redistest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// startMini starts simulated servers. Their keys expire as time passes, which
// miniredis leaves to its user.
func startMini(tb testing.TB, n int) []*Server {
	tb.Helper()
	var all []*Server
	for range n {
		m := miniredis.RunT(tb)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			age(m, stop)
		}()
		tb.Cleanup(func() { close(stop); <-stopped })
		all = append(all, &Server{Addr: m.Addr(), Flavour: Miniredis, tb: tb})
	}
	return all
}

func age(m *miniredis.Miniredis, stop <-chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			m.FastForward(now.Sub(last))
			last = now
		}
	}
}
