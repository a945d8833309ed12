package quorum_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/conformance"
)

func TestConformance(t *testing.T) {
	for name, around := range map[string]func(*testing.T, func(*testing.T)){
		"bubble": synctest.Test, "real time": nil,
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Harness{New: ofMemory, Peer: peer, Around: around})
		})
	}
}

// shared is a quorum whose nodes another client can reach too.
type shared struct {
	*quorum.Backend
	nodes []backend.Backend
}

func ofMemory(t testing.TB) backend.Backend {
	var nodes []backend.Backend
	for range 5 {
		nodes = append(nodes, memory.New(nil))
	}
	return open(t, nodes)
}

func peer(t testing.TB, b backend.Backend) backend.Backend { return open(t, b.(shared).nodes) }

func open(t testing.TB, nodes []backend.Backend) shared {
	t.Helper()
	q, err := quorum.New(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return shared{q, nodes}
}
