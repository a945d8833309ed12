package redis_test

import (
	"os"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/redistest"
)

// remote is a client whose way to each server is a proxy of its own.
type remote struct {
	backend.Backend
	ways []*redistest.Proxy
}

func (r *remote) Unwrap() backend.Backend { return r.Backend }

// through connects a client by proxies.
func through(t testing.TB, servers []*redistest.Server, connect func(addrs []string) backend.Backend) *remote {
	r := new(remote)
	var addrs []string
	for _, s := range servers {
		way := redistest.NewProxy(t, s.Addr)
		r.ways, addrs = append(r.ways, way), append(addrs, way.Addr)
	}
	r.Backend = connect(addrs)
	return r
}

// ours says that the servers of a flavour may be killed and frozen.
func ours(f redistest.Flavour) bool {
	return f != redistest.Miniredis && os.Getenv("DISTMUTEX_REDIS_SERVERS") == ""
}

// withClocks is the harness of clients, and of clocks that are moved: the one
// server's, or those of as many as a quorum bears.
func withClocks(t testing.TB, servers []*redistest.Server, open func(testing.TB) backend.Backend) conformance.Harness {
	h := conformance.Harness{
		New:  open,
		Peer: func(t testing.TB, _ backend.Backend) backend.Backend { return open(t) },
	}
	wrong := servers[:max(1, len(servers)/2)]
	for _, s := range wrong {
		if err := s.FixedClock(); err != nil {
			t.Logf("MoveClock is not offered: %v", err)
			return h
		}
	}
	h.Faults.MoveClock = func(_ testing.TB, _ backend.Backend, by time.Duration) {
		for _, s := range wrong {
			s.MoveClock(by)
		}
	}
	return h
}

// underFaults is the harness of clients, each with proxies, and of what befalls
// the servers: one that has its data on disk, or a quorum, of which one forgets
// and two stand still at most.
func underFaults(t testing.TB, servers []*redistest.Server, connect func(t testing.TB, addrs []string) backend.Backend) conformance.Harness {
	h := withClocks(t, servers, func(t testing.TB) backend.Backend {
		return through(t, servers, func(addrs []string) backend.Backend { return connect(t, addrs) })
	})
	h.Faults.LoseReply = func(_ testing.TB, b backend.Backend, l backend.Lease) {
		for _, way := range b.(*remote).ways {
			way.LoseReply(1, l.Owner)
		}
	}
	h.Faults.Hold = func(_ testing.TB, b backend.Backend) func() {
		silent := func(on bool) {
			for _, way := range b.(*remote).ways {
				way.BlackHole(on)
			}
		}
		silent(true)
		return func() { silent(false) }
	}
	if !ours(servers[0].Flavour) {
		return h
	}
	h.Faults.Pause = func(testing.TB, backend.Backend) func() { return freeze(servers) }
	h.Faults.Crash = func(testing.TB, backend.Backend) func() {
		servers[0].Kill()
		return servers[0].Restart
	}
	if len(servers) == 1 {
		h.Faults.Forget = func(testing.TB, backend.Backend) { servers[0].Wipe() }
		return h
	}
	h.Faults.Forget = func(testing.TB, backend.Backend) { servers[0].Restart() }
	h.Faults.Minority = func(testing.TB, backend.Backend) func() { return freeze(servers[:len(servers)/2]) }
	return h
}

func freeze(servers []*redistest.Server) (thaw func()) {
	for _, s := range servers {
		s.Freeze()
	}
	return func() {
		for _, s := range servers {
			s.Thaw()
		}
	}
}
