package conformance_test

import (
	"context"
	"errors"
	"sync"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
)

// faulty is a sound backend of whose verbs some have been replaced by a fault.
type faulty struct {
	*memory.Backend // the verbs as they should be

	acquire, wait  func(context.Context, backend.Lease) (backend.Lease, error)
	renew, release func(context.Context, backend.Lease) error
	close          func() // nil: nothing has to be closed

	mu     sync.Mutex
	calls  int
	grants map[string][]backend.Lease // by key, as Acquire and Wait told them
	seen   map[string]backend.Token   // by key, what faults remember
}

func plant(fault func(*faulty)) *faulty {
	f := &faulty{Backend: memory.New(nil), grants: make(map[string][]backend.Lease), seen: make(map[string]backend.Token)}
	f.acquire, f.wait, f.renew, f.release = f.Backend.Acquire, f.Backend.Wait, f.Backend.Renew, f.Backend.Release
	if fault != nil {
		fault(f)
	}
	return f
}

func (f *faulty) Acquire(ctx context.Context, l backend.Lease) (backend.Lease, error) {
	got, err := f.acquire(ctx, l)
	return f.granted(got, err), err
}

func (f *faulty) Wait(ctx context.Context, l backend.Lease) (backend.Lease, error) {
	got, err := f.wait(ctx, l)
	return f.granted(got, err), err
}

func (f *faulty) Renew(ctx context.Context, l backend.Lease) error   { return f.renew(ctx, l) }
func (f *faulty) Release(ctx context.Context, l backend.Lease) error { return f.release(ctx, l) }

func (f *faulty) granted(got backend.Lease, err error) backend.Lease {
	if err == nil && got.TTL > 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.grants[got.Key] = append(f.grants[got.Key], got)
	}
	return got
}

// grantOf is the first grant of a lease's owner.
func (f *faulty) grantOf(l backend.Lease) (backend.Lease, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.grants[l.Key] {
		if g.Owner == l.Owner {
			return g, true
		}
	}
	return backend.Lease{}, false
}

// latest is the latest grant of key.
func (f *faulty) latest(key string) (l backend.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all := f.grants[key]; len(all) > 0 {
		l = all[len(all)-1]
	}
	return l
}

// held says that owner has been granted key once.
func (f *faulty) held(l backend.Lease) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.grants[l.Key] {
		if g.Owner == l.Owner {
			return true
		}
	}
	return false
}

// every says true on each n-th call.
func (f *faulty) every(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.calls%n == 0
}

// tokens replaces the tokens of all grants by next(key, granted).
func (f *faulty) tokens(next func(want, got backend.Lease) backend.Token) {
	f.answered(func(want, got backend.Lease) backend.Lease {
		got.Token = next(want, got)
		return got
	})
}

// answered spoils what Acquire and Wait answer.
func (f *faulty) answered(out func(want, got backend.Lease) backend.Lease) {
	f.asked(func(want backend.Lease) backend.Lease { return want }, out)
}

// asked spoils what Acquire and Wait are asked for, and what they answer.
func (f *faulty) asked(in func(backend.Lease) backend.Lease, out func(want, got backend.Lease) backend.Lease) {
	spoil := func(call func(context.Context, backend.Lease) (backend.Lease, error)) func(context.Context, backend.Lease) (backend.Lease, error) {
		return func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			got, err := call(ctx, in(want))
			if err == nil {
				got = out(want, got)
			}
			return got, err
		}
	}
	f.acquire, f.wait = spoil(f.acquire), spoil(f.wait)
}

// all spoils what every verb is asked for. The answer is put right.
func (f *faulty) all(in func(backend.Lease) backend.Lease) {
	f.asked(in, func(want, got backend.Lease) backend.Lease {
		got.Key, got.Owner = want.Key, want.Owner
		return got
	})
	renew, release := f.renew, f.release
	f.renew = func(ctx context.Context, l backend.Lease) error { return renew(ctx, in(l)) }
	f.release = func(ctx context.Context, l backend.Lease) error { return release(ctx, in(l)) }
}

// errs spoils the errors of every verb.
func (f *faulty) errs(spoil func(op string, l backend.Lease, err error) error) {
	acquire, wait, renew, release := f.acquire, f.wait, f.renew, f.release
	f.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
		got, err := acquire(ctx, l)
		return got, spoil("acquire", l, err)
	}
	f.wait = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
		got, err := wait(ctx, l)
		return got, spoil("wait", l, err)
	}
	f.renew = func(ctx context.Context, l backend.Lease) error { return spoil("renew", l, renew(ctx, l)) }
	f.release = func(ctx context.Context, l backend.Lease) error { return spoil("release", l, release(ctx, l)) }
}

func isInvalid(err error) bool {
	var invalid *backend.InvalidError
	return errors.As(err, &invalid)
}
