package quorum_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

// freezer is a route on which some nodes are frozen: requests reach them when
// they thaw.
type freezer struct {
	mu     sync.Mutex
	nodes  map[int]bool
	queued []func()     // messages to frozen nodes, in order
	asked  atomic.Int64 // how many there were
}

// wrap puts the freezer before a node.
func (f *freezer) wrap(i int, b backend.Backend) backend.Backend { return &freezable{f, i, b} }

type freezable struct {
	f    *freezer
	node int
	b    backend.Backend
}

// hold blocks while the node is frozen. The message stays on its way when ctx
// ends, and in order: the socket keeps it.
func (z *freezable) hold(ctx context.Context, do func()) error {
	time.Sleep(ms)
	done := make(chan struct{})
	z.f.mu.Lock()
	frozen := z.f.nodes[z.node]
	if frozen {
		z.f.asked.Add(1)
		z.f.queued = append(z.f.queued, func() { do(); close(done) })
	}
	z.f.mu.Unlock()
	if !frozen {
		do()
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (z *freezable) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	var r struct {
		got backend.Lease
		err error
	}
	reply := &r
	if err := z.hold(ctx, func() { reply.got, reply.err = z.b.Acquire(ctx, want) }); err != nil {
		return backend.Lease{}, err
	}
	return r.got, r.err
}

func (z *freezable) Renew(ctx context.Context, held backend.Lease) error {
	return z.send(ctx, func() error { return z.b.Renew(ctx, held) })
}

func (z *freezable) Release(ctx context.Context, held backend.Lease) error {
	return z.send(ctx, func() error { return z.b.Release(ctx, held) })
}

func (z *freezable) send(ctx context.Context, do func() error) error {
	answer := make(chan error, 1)
	if err := z.hold(ctx, func() { answer <- do() }); err != nil {
		return err
	}
	return <-answer
}

func (f *freezer) freeze(nodes ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes = make(map[int]bool)
	for _, n := range nodes {
		f.nodes[n] = true
	}
}

func (f *freezer) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes = nil
	for _, do := range f.queued {
		do()
	}
	f.queued = nil
}

func frozenQuorum(t *testing.T, c cluster) (*quorum.Backend, *freezer) {
	f := &freezer{}
	var nodes []backend.Backend
	for i, s := range c {
		nodes = append(nodes, f.wrap(i, s))
	}
	q, err := quorum.New(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q, f
}
