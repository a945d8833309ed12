package sim

import (
	"context"
	"errors"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// tap is the layer right below package mutex: where a client may be stopped, and
// where the laws see what was asked for and what was told. It is a mutex.Observer.
type tap struct {
	c     *client
	inner backend.Backend
	wait  backend.Waiter
}

func newTap(c *client, inner backend.Backend) *tap {
	t := &tap{c: c, inner: inner}
	t.wait, _ = backend.As[backend.Waiter](inner)
	return t
}

func (t *tap) Unwrap() backend.Backend { return t.inner }

// begin is the client's way down with one call.
func (t *tap) begin(op op, l backend.Lease) (owner, int) {
	o := t.c.owner(l)
	nth := t.c.w.log.called(op, o)
	t.c.point(int(op), o.client, o.key, o.n, nth)
	t.c.w.log.call(t.c.id, op, o)
	return o, nth
}

// end is the way back.
func (t *tap) end(op op, o owner, nth int, err error) {
	t.c.w.log.ret(t.c.id, op, o, err)
	t.c.point(int(op), o.client, o.key, o.n, nth, 1)
}

func (t *tap) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	o, nth := t.begin(opAcquire, want)
	log := t.c.w.log
	log.asked(o)
	got, err := t.inner.Acquire(ctx, want)
	switch {
	case err == nil:
		log.granted(o, want, got)
	case errors.Is(err, backend.ErrHeld):
		log.refused(o)
	}
	t.end(opAcquire, o, nth, err)
	return got, err
}

func (t *tap) Renew(ctx context.Context, held backend.Lease) error {
	o, nth := t.begin(opRenew, held)
	err := t.inner.Renew(ctx, held)
	switch {
	case err == nil:
		t.c.w.log.renewed(o, held)
	case errors.Is(err, backend.ErrLost):
		t.c.w.log.lost(o)
	}
	t.end(opRenew, o, nth, err)
	return err
}

func (t *tap) Release(ctx context.Context, held backend.Lease) error {
	o, nth := t.begin(opRelease, held)
	err := t.inner.Release(ctx, held)
	if err == nil {
		t.c.w.log.released(o)
	}
	t.end(opRelease, o, nth, err)
	return err
}

func (t *tap) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	o, nth := t.begin(opWait, want)
	got, err := t.wait.Wait(ctx, want)
	t.end(opWait, o, nth, err)
	return got, err
}

// Observe stops a stopped client wherever package mutex calls its observer.
func (t *tap) Observe(ctx context.Context, e mutex.Event) (context.Context, func(error)) {
	key, op := keyOf(e.Key), len(e.Op) // lengths differ enough
	t.c.point(9, key, op)
	return ctx, func(error) { t.c.point(9, key, op, 1) }
}
