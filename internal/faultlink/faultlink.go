// Package faultlink puts a faulty way in front of a backend, for tests: it loses
// replies, and holds requests back.
package faultlink

import (
	"context"
	"errors"
	"sync"

	"github.com/distmutex/distmutex/backend"
)

// ErrReply is what a call gets whose reply was lost.
var ErrReply = errors.New("the reply was lost")

// Link is one client's way to a backend. Its calls return when their contexts
// end; what they left on its way arrives all the same, before what the same
// owner asks for later.
type Link struct {
	to backend.Backend

	mu   sync.Mutex
	last map[string]<-chan struct{} // by owner, closed when its last call has ended
	lose map[string]bool            // by owner
	open chan struct{}              // closed: nothing is held back
}

var (
	_ backend.Backend = (*Link)(nil)
	_ backend.Waiter  = Waiting{}
)

// New is a link to a backend.
func New(to backend.Backend) *Link {
	l := &Link{to: to, last: make(map[string]<-chan struct{}), lose: make(map[string]bool), open: make(chan struct{})}
	close(l.open)
	return l
}

// To is the backend at the other end.
func (l *Link) To() backend.Backend { return l.to }

// LoseReply loses the reply to the owner's next request, which is carried out.
func (l *Link) LoseReply(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose[owner] = true
}

// Hold keeps requests back until deliver is called.
func (l *Link) Hold() (deliver func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := make(chan struct{})
	l.open = open
	return sync.OnceFunc(func() { close(open) })
}

func (l *Link) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	return l.carry(ctx, "acquire", want, l.to.Acquire)
}

func (l *Link) Renew(ctx context.Context, held backend.Lease) error {
	_, err := l.carry(ctx, "renew", held, func(ctx context.Context, held backend.Lease) (backend.Lease, error) {
		return held, l.to.Renew(ctx, held)
	})
	return err
}

func (l *Link) Release(ctx context.Context, held backend.Lease) error {
	_, err := l.carry(ctx, "release", held, func(ctx context.Context, held backend.Lease) (backend.Lease, error) {
		return held, l.to.Release(ctx, held)
	})
	return err
}

type verb func(context.Context, backend.Lease) (backend.Lease, error)

// carry sends a request behind the owner's last one, and waits for its reply or
// the end of ctx.
func (l *Link) carry(ctx context.Context, op string, lease backend.Lease, call verb) (got backend.Lease, err error) {
	if err := lease.Validate(); err != nil {
		return backend.Lease{}, err
	}
	if ctx.Err() != nil {
		return backend.Lease{}, fail(op, lease, ctx.Err())
	}
	var reply struct {
		got backend.Lease
		err error
	}
	ended := make(chan struct{})
	l.mu.Lock()
	last, open := l.last[lease.Owner], l.open
	l.last[lease.Owner] = ended
	l.mu.Unlock()
	go func() {
		defer close(ended)
		if last != nil {
			<-last
		}
		<-open
		reply.got, reply.err = call(context.WithoutCancel(ctx), lease)
		if l.loses(lease.Owner) {
			reply.got, reply.err = backend.Lease{}, fail(op, lease, ErrReply)
		}
	}()
	select {
	case <-ended:
		return reply.got, reply.err
	case <-ctx.Done():
		return backend.Lease{}, fail(op, lease, ctx.Err())
	}
}

func (l *Link) loses(owner string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.lose[owner]
	delete(l.lose, owner)
	return lost
}

func fail(op string, l backend.Lease, err error) error {
	return &backend.Error{Op: op, Key: l.Key, Err: err}
}

// Waiting is a link to a backend that is a Waiter.
type Waiting struct{ *Link }

// Wait waits at the other end. A Wait whose context ends before it arrives never
// does.
func (w Waiting) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
		return backend.Lease{}, fail("wait", want, ctx.Err())
	}
	got, err := w.to.(backend.Waiter).Wait(ctx, want)
	if err == nil && w.loses(want.Owner) {
		return backend.Lease{}, fail("wait", want, ErrReply)
	}
	return got, err
}
