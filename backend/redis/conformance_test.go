package redis_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/redistest"
)

// Most faults befall one flavour alone: proxies between make a run take three
// times as long.
func TestConformance(t *testing.T) {
	everyFlavour(t, func(t *testing.T, f redistest.Flavour) {
		if f != redistest.Flavours()[0] {
			conform(t, f, func(*goredis.Options) {})
			return
		}
		var args []string
		if ours(f) {
			args = redistest.Durable()
		}
		servers := redistest.StartClocked(t, f, 1, args...)
		conformance.Run(t, exempt(underFaults(t, servers, func(t testing.TB, addrs []string) backend.Backend {
			return over(t, goredis.NewClient(&goredis.Options{Addr: addrs[0]}))
		}), f))
	})
}

// A client whose calls end with their contexts, and that is short of
// connections. What it does is the same on every server, so one will do.
func TestConformanceOfAStrictClient(t *testing.T) {
	t.Parallel()
	conform(t, redistest.Flavours()[0], func(o *goredis.Options) {
		o.MaxRetries, o.ContextTimeoutEnabled, o.PoolSize = -1, true, 2
	})
}

func conform(t *testing.T, f redistest.Flavour, edit func(*goredis.Options)) {
	servers := redistest.StartClocked(t, f, 1)
	conformance.Run(t, exempt(withClocks(t, servers, func(t testing.TB) backend.Backend {
		o := &goredis.Options{Addr: servers[0].Addr}
		edit(o)
		return over(t, goredis.NewClient(o))
	}), f))
}

// Five servers of each flavour, of which one forgets and two stand still or have
// wrong clocks at most.
func TestQuorumConformance(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		servers := redistest.StartClocked(t, f, members)
		connect := func(t testing.TB, addrs []string) backend.Backend { return quorumOf(t, addrs) }
		if f == redistest.Flavours()[0] {
			conformance.Run(t, exempt(underFaults(t, servers, connect), f))
			return
		}
		conformance.Run(t, exempt(withClocks(t, servers, func(t testing.TB) backend.Backend {
			return connect(t, redistest.Addrs(servers))
		}), f))
	})
}
