package redis_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/redistest"
)

// The faults befall one flavour alone: proxies between make a run take three
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
		conformance.Run(t, exempt(underFaults(redistest.Start(t, f, 1, args...), func(t testing.TB, addrs []string) backend.Backend {
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
	s := redistest.Start(t, f, 1)[0]
	open := func(t testing.TB) backend.Backend {
		o := &goredis.Options{Addr: s.Addr}
		edit(o)
		return over(t, goredis.NewClient(o))
	}
	conformance.Run(t, exempt(conformance.Harness{
		New:  open,
		Peer: func(t testing.TB, _ backend.Backend) backend.Backend { return open(t) },
	}, f))
}
