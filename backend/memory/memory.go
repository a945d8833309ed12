// Package memory is the reference backend: leases in the memory of one process.
// It is for programs of a single process, for tests, and to be read after
// package backend.
package memory

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Options are the settings of a Backend. Nil and zero are good.
type Options struct {
	// After is the token that every grant exceeds; zero makes 1 the first.
	// Tokens end with the process. Where the resource they guard outlives it,
	// time.Now().UnixMicro() keeps them rising over a restart.
	After backend.Token
}

// Backend is a backend.Backend and a backend.Waiter. It has no goroutine and
// nothing to close: one timer for each held key, and a few left over from keys
// that were, is all that runs.
//
// A lease ends on time, whether or not anybody looks. A key that nobody holds
// takes no memory.
type Backend struct {
	seed   maphash.Seed
	born   time.Time
	last   atomic.Int64 // the largest token so far, of any key, so that none needs a counter
	shards [64]shard
}

// New returns a Backend in which no key is held.
func New(o *Options) *Backend {
	b := &Backend{seed: maphash.MakeSeed(), born: time.Now()}
	if o != nil {
		b.last.Store(max(0, int64(o.After)))
	}
	for i := range b.shards {
		b.shards[i].holds = make(map[string]*hold)
	}
	return b
}

// Acquire makes one attempt. A key with a line is never free: whoever waits
// with Wait cannot be overtaken.
func (b *Backend) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := check(ctx, "acquire", want); err != nil {
		return backend.Lease{}, err
	}
	s := b.lock(want.Key)
	defer s.mu.Unlock()
	got, err := b.try(s, want)
	if err != nil {
		return backend.Lease{}, fail("acquire", want.Key, err)
	}
	return got, nil
}

// Wait returns when want is granted or ctx ends, and not before: no wake-up can
// get lost here. Those who wait for a key get it in the order in which they
// came; the whole term of each counts from the moment it got the key.
func (b *Backend) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := check(ctx, "wait", want); err != nil {
		return backend.Lease{}, err
	}
	s := b.lock(want.Key)
	switch got, err := b.try(s, want); {
	case err == nil:
		s.mu.Unlock()
		return got, nil
	case err != backend.ErrHeld:
		s.mu.Unlock()
		return backend.Lease{}, fail("wait", want.Key, err)
	}
	w := &waiter{want: want, granted: make(chan backend.Lease, 1)}
	h := s.holds[want.Key]
	place := h.line.PushBack(w)
	s.mu.Unlock()

	select {
	case got, ok := <-w.granted:
		if !ok {
			return backend.Lease{}, fail("wait", want.Key, errSpent)
		}
		return got, nil
	case <-ctx.Done():
		s.mu.Lock()
		h.line.Remove(place) // does nothing if the key was granted just now: the Release that is owed undoes that
		s.mu.Unlock()
		return backend.Lease{Key: want.Key}, fail("wait", want.Key, ctx.Err())
	}
}

// Renew starts the term anew. The timer stays as it is, and is set again when
// it rings too early: a renewal costs one look-up.
func (b *Backend) Renew(ctx context.Context, held backend.Lease) error {
	if err := check(ctx, "renew", held); err != nil {
		return err
	}
	s := b.lock(held.Key)
	defer s.mu.Unlock()
	now := b.now()
	h := b.at(s, held.Key, now)
	if h == nil || h.owner != held.Owner {
		return fail("renew", held.Key, backend.ErrLost)
	}
	b.extend(h, held, now)
	return nil
}

// Release gives a lease up. The key goes to the head of the line, if there is
// one, before Release returns.
func (b *Backend) Release(ctx context.Context, held backend.Lease) error {
	if err := check(ctx, "release", held); err != nil {
		return err
	}
	s := b.lock(held.Key)
	defer s.mu.Unlock()
	switch h := b.at(s, held.Key, b.now()); {
	case h != nil && h.owner == held.Owner:
		b.pass(s, h)
	case held.Token == 0: // never told of a grant, so nothing is lost
	case h != nil || held.Ended(time.Now()):
		return fail("release", held.Key, backend.ErrLost)
	}
	return nil
}

func check(ctx context.Context, op string, l backend.Lease) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fail(op, l.Key, err)
	}
	return nil
}

func fail(op, key string, err error) error {
	return &backend.Error{Op: op, Key: key, Err: err}
}

// now is how long b has existed, by the monotonic clock alone: reading the wall
// clock too would cost as much again.
func (b *Backend) now() time.Duration { return time.Since(b.born) }

func (b *Backend) lock(key string) *shard {
	s := &b.shards[maphash.String(b.seed, key)%uint64(len(b.shards))]
	s.mu.Lock()
	return s
}
