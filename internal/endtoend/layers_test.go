package endtoend

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/internal/redistest"
	"github.com/distmutex/distmutex/retry"
	"github.com/distmutex/distmutex/telemetry"
)

// layers is each of them alone, and all of them at once.
func layers(t *testing.T) map[string][]backend.Middleware {
	again := retry.Middleware(retry.FullJitter(time.Millisecond, 50*time.Millisecond))
	fenced := fencing.Middleware(fencing.NewCounter(0))
	measured, err := telemetry.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	logged := telemetry.Log(slog.New(slog.DiscardHandler))
	return map[string][]backend.Middleware{
		"retry":     {again},
		"fencing":   {fenced},
		"telemetry": {measured.Middleware},
		"log":       {logged},
		"all":       {logged, measured.Middleware, again, fenced},
	}
}

// The contract holds through every layer, over every kind of backend.
func TestConformanceThroughLayers(t *testing.T) {
	for name, ms := range layers(t) {
		t.Run(name+"/memory", func(t *testing.T) {
			h := through(ms, func(testing.TB) backend.Backend { return memory.New(nil) })
			h.Around = synctest.Test
			conformance.Run(t, h)
		})
		t.Run(name+"/quorum of memory", func(t *testing.T) {
			h := through(ms, ofMemory)
			h.Around = synctest.Test
			conformance.Run(t, h)
		})
	}
}

// On real servers: through all layers at once on one node of every flavour, and
// through each alone on one of them, which is enough to see that it gets along with
// a server; what a layer does is the same on all. On five nodes the flavours share
// them out. Fencing alone is over a backend that has no tokens, which come from the
// server as well.
func TestConformanceThroughLayersOnServers(t *testing.T) {
	t.Parallel()
	stacks := map[redistest.Flavour]map[int][]string{
		redistest.Redis7:  {1: {"all", "retry", "log"}, 5: {"all"}},
		redistest.Redis8:  {1: {"all", "fencing"}, 5: {"fencing"}},
		redistest.Valkey9: {1: {"all", "telemetry"}, 5: {"telemetry"}},
	}
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsReal(t, f)
		t.Parallel()
		for _, nodes := range []int{1, 5} {
			servers := redistest.Start(t, f, nodes)
			for _, name := range stacks[f][nodes] {
				t.Run(fmt.Sprint(name, " ", nodes), func(t *testing.T) {
					h := through(layers(t)[name], func(t testing.TB) backend.Backend { return dial(t, servers) })
					if name == "fencing" {
						h = fencedPlainly(t, servers)
					}
					h.Peer = func(t testing.TB, _ backend.Backend) backend.Backend { return h.New(t) }
					conformance.Run(t, h)
				})
			}
		}
	})
}

func fencedPlainly(t *testing.T, servers []*redistest.Server) conformance.Harness {
	tokens, err := redis.NewTokens(servers[0].Client())
	if err != nil {
		t.Fatal(err)
	}
	return through([]backend.Middleware{fencing.Middleware(tokens)}, func(t testing.TB) backend.Backend {
		return dialWith(t, servers, &redis.Options{Plain: true, Unguarded: true})
	})
}

func through(ms []backend.Middleware, open func(t testing.TB) backend.Backend) conformance.Harness {
	return conformance.Harness{New: func(t testing.TB) backend.Backend { return backend.Wrap(open(t), ms...) }}
}

func ofMemory(t testing.TB) backend.Backend {
	q, err := quorum.New([]backend.Backend{memory.New(nil), memory.New(nil), memory.New(nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return q
}
