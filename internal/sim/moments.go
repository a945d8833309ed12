package sim

import (
	"context"
	"sync"

	"github.com/distmutex/distmutex/backend"
)

// moments is a layer in which each call takes a moment of its own, so that calls
// that a layer above makes in one instant come apart.
type moments struct {
	backend.Backend
	c     *client
	mu    sync.Mutex
	calls map[call]int
}

func (c *client) moments(b backend.Backend) backend.Backend {
	return &moments{Backend: b, c: c, calls: make(map[call]int)}
}

func (m *moments) Unwrap() backend.Backend { return m.Backend }

func (m *moments) take(op op, l backend.Lease) {
	o := m.c.owner(l)
	m.mu.Lock()
	m.calls[call{op, o}]++
	nth := m.calls[call{op, o}]
	m.mu.Unlock()
	m.c.point(7, int(op), o.client, o.key, o.n, nth)
}

func (m *moments) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	m.take(opAcquire, want)
	return m.Backend.Acquire(ctx, want)
}

func (m *moments) Renew(ctx context.Context, held backend.Lease) error {
	m.take(opRenew, held)
	return m.Backend.Renew(ctx, held)
}

func (m *moments) Release(ctx context.Context, held backend.Lease) error {
	m.take(opRelease, held)
	return m.Backend.Release(ctx, held)
}
