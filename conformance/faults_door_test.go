package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var doorFaults = []planted{
	{fault: "any key taken", id: "input/key", plant: func(f *faulty) {
		f.keys(func(key string) string {
			if backend.ValidateKey(key) != nil {
				return "some key"
			}
			return key
		})
	}},
	{fault: "no owner taken for one", id: "input/owner", plant: func(f *faulty) {
		f.owners(func(owner string) string {
			if owner == "" {
				return "nobody"
			}
			return owner
		})
	}},
	{fault: "no term taken for no end", id: "input/ttl", plant: func(f *faulty) {
		f.all(func(l backend.Lease) backend.Lease {
			if l.TTL <= 0 {
				l.TTL = backend.MaxTTL
			}
			return l
		})
	}},
	{fault: "a term rounded to milliseconds", id: "input/ttl", plant: func(f *faulty) {
		f.all(func(l backend.Lease) backend.Lease {
			l.TTL = l.TTL.Truncate(time.Millisecond)
			return l
		})
	}},
	{fault: "bad input taken for contention", id: "input/ttl", plant: func(f *faulty) {
		f.errs(func(op string, l backend.Lease, err error) error {
			if isInvalid(err) {
				return &backend.Error{Op: op, Key: l.Key, Err: errors.Join(backend.ErrHeld, err)}
			}
			return err
		})
	}},
	{fault: "a negative token taken for none", id: "input/token", plant: func(f *faulty) {
		f.all(func(l backend.Lease) backend.Lease {
			l.Token = max(l.Token, 0)
			return l
		})
	}},
	{fault: "a token too large cut down", id: "input/token", plant: func(f *faulty) {
		f.all(func(l backend.Lease) backend.Lease {
			l.Token = min(l.Token, backend.MaxToken)
			return l
		})
	}},
	{fault: "every failure called already taken", id: "errors/kinds", plant: func(f *faulty) {
		f.errs(func(op string, l backend.Lease, err error) error {
			if errors.Is(err, backend.ErrLost) {
				return &backend.Error{Op: op, Key: l.Key, Err: backend.ErrHeld}
			}
			return err
		})
	}},
	{fault: "the context's error hidden", id: "errors/kinds", plant: func(f *faulty) {
		f.errs(func(op string, l backend.Lease, err error) error {
			if errors.Is(err, context.DeadlineExceeded) {
				return &backend.Error{Op: op, Key: l.Key, Err: errors.New("i/o timeout")}
			}
			return err
		})
	}},
	{fault: "M50 an error taken for contention", id: "errors/kinds", plant: func(f *faulty) {
		f.errs(func(op string, l backend.Lease, err error) error {
			if errors.Is(err, context.Canceled) {
				return &backend.Error{Op: op, Key: l.Key, Err: backend.ErrHeld}
			}
			return err
		})
	}},
	{fault: "the owner in the error", id: "errors/text", plant: func(f *faulty) {
		f.errs(func(_ string, l backend.Lease, err error) error {
			if err != nil {
				err = fmt.Errorf("for %s: %w", l.Owner, err)
			}
			return err
		})
	}},
	{fault: "no key in the error", id: "errors/text", plant: func(f *faulty) {
		f.errs(func(_ string, _ backend.Lease, err error) error {
			if errors.Is(err, backend.ErrHeld) {
				return backend.ErrHeld
			}
			return err
		})
	}},
}

var cancelFaults = []planted{
	{fault: "a context that nobody looks at", id: "cancel/dead-context", plant: func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error { return renew(context.WithoutCancel(ctx), l) }
	}},
	{fault: "M33 a grant kept after the cancel", id: "cancel/undone", plant: func(f *faulty) {
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
	{fault: "a Renew that ends the lease when cancelled", id: "cancel/renew", plant: func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error {
			if ctx.Err() != nil {
				_ = f.Backend.Release(context.WithoutCancel(ctx), l)
			}
			return renew(ctx, l)
		}
	}},
	{fault: "a failed Release that forgets its lease", id: "cancel/release", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if f.seen[l.Owner] > 0 {
				return nil
			}
			f.seen[l.Owner]++
			return release(ctx, l)
		}
	}},
	{fault: "T8 a Release that overtakes its Acquire", id: "cancel/race", plant: func(f *faulty) {
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
