package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/mutex"
)

// In a quorum each node is measured by its name, and within the whole.
func TestNodesOfAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var nodes []backend.Backend
		for _, name := range []string{"a", "b", "c"} {
			s := &server{Backend: memory.New(nil), name: name}
			if name == "c" {
				s.acquire = func(context.Context, backend.Lease) (backend.Lease, error) {
					time.Sleep(5 * ms)
					return backend.Lease{}, errLink
				}
				r.server = s
			}
			nodes = append(nodes, r.tel.Middleware(s))
		}
		q, err := quorum.New(nodes, &quorum.Options{OnNode: r.tel.OnNode})
		if err != nil {
			t.Fatal(err)
		}
		r.use(r.tel.Middleware(q), nil)
		r.lock()
		time.Sleep(time.Second)
		if err := r.m.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		r.wantSpans(
			"acquire attempt < acquire attempt: 0s, ok, token 1, node a",
			"acquire attempt < acquire attempt: 0s, ok, token 1, node b",
			"acquire attempt < acquire attempt: 5ms, !unknown, node c",
			"acquire attempt < acquire lock: 0s, ok, token 1",
			"acquire lock: 0s, ok, token 1, attempts 1",
			"release attempt < release lock: 0s, ok, token 1, node a",
			"release attempt < release lock: 0s, ok, token 1, node b",
			"release attempt < release lock: 0s, ok, token 1, node c",
			"release lock ~ acquire lock: 0s, ok, token 1")
		r.wantMetrics(counted(`held{} 0`, `hold.duration{reason=unlocked} 1: 1s`, `release.duration{outcome=ok} 1: 0s`,
			`node.duration{node=a,operation=acquire,outcome=ok} 1: 0s`,
			`node.duration{node=a,operation=release,outcome=ok} 1: 0s`,
			`node.duration{node=b,operation=acquire,outcome=ok} 1: 0s`,
			`node.duration{node=b,operation=release,outcome=ok} 1: 0s`,
			`node.duration{node=c,operation=acquire,outcome=unknown,error.type=unknown} 1: 0.005s`,
			`node.duration{node=c,operation=release,outcome=ok} 1: 0s`)...)
		r.noOwner()
		q.Close(t.Context())
	})
}

// A node that fails is set aside, and one that answers again is not.
func TestNodeSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var nodes []backend.Backend
		for _, name := range []string{"a", "b", "c"} {
			r.server = &server{Backend: memory.New(nil), name: name}
			nodes = append(nodes, r.server)
		}
		r.server.acquire = func(context.Context, backend.Lease) (backend.Lease, error) { return backend.Lease{}, errLink }
		r.server.release = func(context.Context, backend.Lease) error { return errLink }
		q, err := quorum.New(nodes, &quorum.Options{OnNode: r.tel.OnNode})
		if err != nil {
			t.Fatal(err)
		}
		m, err := mutex.New(q, "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		cycle := func() {
			t.Helper()
			if err := m.Lock(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			if err := m.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		cycle()
		r.wantMetrics() // two failures are not enough
		cycle()
		r.wantMetrics(`node.aside{node=c} 1`)
		r.server.change(func() { r.server.acquire, r.server.release = nil, nil })
		cycle()
		r.wantMetrics(`node.aside{node=c} 0`)
		q.Close(t.Context())
	})
}

// Two quorums that count the same node, told in any order.
func TestNodeSetAsideByTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for _, aside := range []bool{true, false, true, true, false} {
			r.tel.OnNode(backend.NodeState{Name: "a", Aside: aside, Err: errors.New("why")})
		}
		r.wantMetrics(`node.aside{node=a} 1`)
	})
}

// A single server that has a name is a node too.
func TestNodeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.server.name = "a"
		r.use(r.tel.Middleware(r.server), nil)
		r.elsewhere(time.Second)
		r.lock()
		r.wantSpans(
			"acquire attempt < acquire lock: 0s, held, node a",
			"wait < acquire lock: 1s, ok, token 2, node a",
			"acquire lock: 1s, ok, token 2, attempts 2, node a")
		r.wantMetrics(`acquire.duration{outcome=ok} 1: 1s`, `acquire.attempts{outcome=ok} 1: 2`, `waiting{} 0`, `held{} 1`,
			`node.duration{node=a,operation=acquire,outcome=held} 1: 0s`)
	})
}
