package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var doorFaults = []planted{
	{"any key taken", "input/key", func(f *faulty) {
		f.keys(func(key string) string {
			if backend.ValidateKey(key) != nil {
				return "some key"
			}
			return key
		})
	}},
	{"no owner taken for one", "input/owner", func(f *faulty) {
		f.owners(func(owner string) string {
			if owner == "" {
				return "nobody"
			}
			return owner
		})
	}},
	{"no term taken for no end", "input/ttl", func(f *faulty) {
		f.all(func(l backend.Lease) backend.Lease {
			if l.TTL <= 0 {
				l.TTL = backend.MaxTTL
			}
			return l
		})
	}},
	{"a term rounded to milliseconds", "input/ttl", func(f *faulty) {
		f.all(func(l backend.Lease) backend.Lease {
			l.TTL = l.TTL.Truncate(time.Millisecond)
			return l
		})
	}},
	{"bad input taken for contention", "input/ttl", func(f *faulty) {
		f.errs(func(op string, l backend.Lease, err error) error {
			if isInvalid(err) {
				return &backend.Error{Op: op, Key: l.Key, Err: errors.Join(backend.ErrHeld, err)}
			}
			return err
		})
	}},
	{"a negative token taken for none", "input/token", func(f *faulty) {
		f.all(func(l backend.Lease) backend.Lease {
			l.Token = max(l.Token, 0)
			return l
		})
	}},
	{"a token too large cut down", "input/token", func(f *faulty) {
		f.all(func(l backend.Lease) backend.Lease {
			l.Token = min(l.Token, backend.MaxToken)
			return l
		})
	}},
	{"every failure called already taken", "errors/kinds", func(f *faulty) {
		f.errs(func(op string, l backend.Lease, err error) error {
			if errors.Is(err, backend.ErrLost) {
				return &backend.Error{Op: op, Key: l.Key, Err: backend.ErrHeld}
			}
			return err
		})
	}},
	{"the context's error hidden", "errors/kinds", func(f *faulty) {
		f.errs(func(op string, l backend.Lease, err error) error {
			if errors.Is(err, context.DeadlineExceeded) {
				return &backend.Error{Op: op, Key: l.Key, Err: errors.New("i/o timeout")}
			}
			return err
		})
	}},
	{"M50 an error taken for contention", "errors/kinds", func(f *faulty) {
		f.errs(func(op string, l backend.Lease, err error) error {
			if errors.Is(err, context.Canceled) {
				return &backend.Error{Op: op, Key: l.Key, Err: backend.ErrHeld}
			}
			return err
		})
	}},
	{"the owner in the error", "errors/text", func(f *faulty) {
		f.errs(func(_ string, l backend.Lease, err error) error {
			if err != nil {
				err = fmt.Errorf("for %s: %w", l.Owner, err)
			}
			return err
		})
	}},
	{"no key in the error", "errors/text", func(f *faulty) {
		f.errs(func(_ string, _ backend.Lease, err error) error {
			if errors.Is(err, backend.ErrHeld) {
				return backend.ErrHeld
			}
			return err
		})
	}},
}

var cancelFaults = []planted{
	{"a context that nobody looks at", "cancel/dead-context", func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error { return renew(context.WithoutCancel(ctx), l) }
	}},
	{"M33 a grant kept after the cancel", "cancel/undone", func(f *faulty) {
		acquire := f.acquire
		f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			got, err := acquire(context.WithoutCancel(ctx), want)
			if ctx.Err() != nil {
				return backend.Lease{}, &backend.Error{Op: "acquire", Key: want.Key, Err: ctx.Err()}
			}
			return got, err
		}
		skipUnknown(f)
	}},
	{"a Renew that ends the lease when cancelled", "cancel/renew", func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error {
			if ctx.Err() != nil {
				_ = f.Backend.Release(context.WithoutCancel(ctx), l)
			}
			return renew(ctx, l)
		}
	}},
	{"a failed Release that forgets its lease", "cancel/release", func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if f.seen[l.Owner] > 0 {
				return nil
			}
			f.seen[l.Owner]++
			return release(ctx, l)
		}
	}},
	{"T8 a Release that overtakes its Acquire", "cancel/race", func(f *faulty) {
		acquire := f.acquire
		f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			done := make(chan error, 1)
			var got backend.Lease
			time.AfterFunc(time.Millisecond, func() { // the way to the server
				var err error
				got, err = acquire(context.WithoutCancel(ctx), want)
				done <- err
			})
			select {
			case err := <-done:
				return got, err
			case <-ctx.Done():
				return backend.Lease{}, &backend.Error{Op: "acquire", Key: want.Key, Err: ctx.Err()}
			}
		}
	}},
}
