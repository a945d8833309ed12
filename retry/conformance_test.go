package retry_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/retry"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness{
		New: func(testing.TB) backend.Backend {
			return backend.Wrap(memory.New(nil), retry.Middleware(retry.FullJitter(ms, 10*ms)))
		},
		Around: synctest.Test,
	})
}

// Over a link that loses something of every attempt the contract holds as well.
// Cases 1 and 35.
func TestConformanceOverALossyLink(t *testing.T) {
	conformance.Run(t, conformance.Harness{
		New: func(testing.TB) backend.Backend {
			return backend.Wrap(&lossy{Backend: memory.New(nil)}, retry.Middleware(retry.Constant(ms)))
		},
		Around: synctest.Test,
	})
}

// lossy loses the reply of the first Acquire of each owner, and its first
// Release before it arrives.
type lossy struct {
	backend.Backend
	seen sync.Map
}

func (l *lossy) first(verb, owner string) bool {
	_, again := l.seen.LoadOrStore(verb+owner, true)
	return !again
}

func (l *lossy) Unwrap() backend.Backend { return l.Backend }

func (l *lossy) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	got, err := l.Backend.Acquire(ctx, want)
	if l.first("acquire", want.Owner) && ctx.Err() == nil && want.Validate() == nil {
		return backend.Lease{}, errLink
	}
	return got, err
}

func (l *lossy) Release(ctx context.Context, held backend.Lease) error {
	if l.first("release", held.Owner) && ctx.Err() == nil && held.Validate() == nil {
		return errLink
	}
	return l.Backend.Release(ctx, held)
}
