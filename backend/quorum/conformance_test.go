package quorum_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/faultlink"
)

func TestConformance(t *testing.T) {
	for name, around := range map[string]func(*testing.T, func(*testing.T)){
		"bubble": synctest.Test, "real time": nil,
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Harness{New: ofMemory, Peer: peer, Around: around, Faults: conformance.Faults{
				LoseReply: func(_ testing.TB, b backend.Backend, l backend.Lease) {
					for _, link := range b.(shared).links {
						link.LoseReply(l.Owner)
					}
				},
				Hold:     func(_ testing.TB, b backend.Backend) func() { return holdBack(b.(shared).links) },
				Minority: func(_ testing.TB, b backend.Backend) func() { return holdBack(b.(shared).nodes[:2]) },
			}})
		})
	}
}

// shared is a quorum whose nodes another client can reach too, by links of its
// own.
type shared struct {
	*quorum.Backend
	nodes []faultlink.Waiting // sick for all
	links []faultlink.Waiting // for this client alone
}

func ofMemory(t testing.TB) backend.Backend {
	var nodes []faultlink.Waiting
	for range 5 {
		nodes = append(nodes, faultlink.Waiting{Link: faultlink.New(memory.New(nil))})
	}
	return open(t, nodes)
}

func peer(t testing.TB, b backend.Backend) backend.Backend { return open(t, b.(shared).nodes) }

func open(t testing.TB, nodes []faultlink.Waiting) shared {
	t.Helper()
	s := shared{nodes: nodes}
	var ways []backend.Backend
	for _, n := range nodes {
		link := faultlink.Waiting{Link: faultlink.New(n)}
		s.links, ways = append(s.links, link), append(ways, link)
	}
	q, err := quorum.New(ways, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Backend = q
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func holdBack(links []faultlink.Waiting) (deliver func()) {
	var all []func()
	for _, l := range links {
		all = append(all, l.Hold())
	}
	return func() {
		for _, d := range all {
			d()
		}
	}
}
