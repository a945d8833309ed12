package conformance_test

import (
	"context"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// counter draws tokens from a counter in f.seen, that a fault can spoil.
func (f *faulty) counter() {
	f.tokens(func(want, _ backend.Lease) backend.Token {
		if holder := f.latest(want.Key); holder.Owner == want.Owner {
			return holder.Token
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen[want.Key]++
		return f.seen[want.Key]
	})
}

// repeated replaces what Acquire does for the holder.
func (f *faulty) repeated(then func(ctx context.Context, want, holder backend.Lease) (backend.Lease, error)) {
	acquire := f.acquire
	f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
		if holder := f.latest(want.Key); holder.Owner == want.Owner {
			return then(ctx, want, holder)
		}
		return acquire(ctx, want)
	}
}

var tokenFaults = []planted{
	{fault: "M17 one token for all", id: "tokens/over-release", plant: func(f *faulty) {
		f.tokens(func(_, _ backend.Lease) backend.Token { return 7 })
	}},
	{fault: "M18 tokens from the clock alone", id: "tokens/over-release", plant: func(f *faulty) {
		f.tokens(func(_, _ backend.Lease) backend.Token { return backend.Token(time.Now().UnixMicro()) })
	}},
	{fault: "M27 a counter deleted on release", id: "tokens/over-release", plant: func(f *faulty) {
		f.counter()
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			f.mu.Lock()
			delete(f.seen, l.Key)
			f.mu.Unlock()
			return release(ctx, l)
		}
	}},
	{fault: "M26 a counter that expires with the lease", id: "tokens/over-expiry", plant: func(f *faulty) {
		f.counter()
		acquire := f.acquire
		f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			if f.latest(want.Key).Ended(time.Now()) {
				f.mu.Lock()
				delete(f.seen, want.Key)
				f.mu.Unlock()
			}
			return acquire(ctx, want)
		}
	}},
	{fault: "M24 a counter set back by the refused", id: "tokens/over-repeats", plant: func(f *faulty) {
		f.counter()
		f.refused(func(_ context.Context, want backend.Lease, err error) (backend.Lease, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.seen[want.Key] = want.Token
			return backend.Lease{}, err
		})
	}},
	{fault: "a floor that is ignored", id: "tokens/floor", plant: func(f *faulty) {
		f.asked(func(l backend.Lease) backend.Lease {
			l.Token = 0
			return l
		}, func(_, got backend.Lease) backend.Lease { return got })
	}},
	{fault: "M24 a floor without max", id: "tokens/floor", plant: func(f *faulty) {
		f.tokens(func(want, got backend.Lease) backend.Token {
			if want.Token > 0 {
				return want.Token
			}
			return got.Token
		})
	}},
	{fault: "M25 tokens of fourteen digits", id: "tokens/exact", plant: func(f *faulty) {
		f.tokens(func(_, got backend.Lease) backend.Token {
			if got.Token > 1e14 {
				return got.Token / 100 * 100
			}
			return got.Token
		})
	}},
	{fault: "M18 tokens from the client's clock", id: "tokens/fast-clock", plant: func(f *faulty) {
		f.tokens(func(want, _ backend.Lease) backend.Token { return backend.Token(want.Start.UnixMicro()) })
	}},
	{fault: "a raise that is ignored", id: "raise/larger", plant: func(f *faulty) {
		f.repeated(func(ctx context.Context, want, _ backend.Lease) (backend.Lease, error) {
			want.Token = 0
			return f.Backend.Acquire(ctx, want)
		})
	}},
	{fault: "M24 a raise without max", id: "raise/smaller", plant: func(f *faulty) {
		f.repeated(func(ctx context.Context, want, _ backend.Lease) (backend.Lease, error) {
			got, err := f.Backend.Acquire(ctx, want)
			got.Token = want.Token
			return got, err
		})
	}},
	{fault: "M38 a raise that adds", id: "raise/repeat", plant: func(f *faulty) {
		f.repeated(func(ctx context.Context, want, holder backend.Lease) (backend.Lease, error) {
			if want.Token == holder.Token {
				want.Token++
			}
			return f.Backend.Acquire(ctx, want)
		})
	}},
	{fault: "a raise that is not stored", id: "raise/next-above", plant: func(f *faulty) {
		f.repeated(func(ctx context.Context, want, holder backend.Lease) (backend.Lease, error) {
			to := max(want.Token, holder.Token)
			want.Token = 0
			got, err := f.Backend.Acquire(ctx, want)
			got.Token = to
			return got, err
		})
	}},
	{fault: "a Release that looks at the token", id: "raise/next-above", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if l.Token != f.latest(l.Key).Token {
				return lost("release", l)
			}
			return release(ctx, l)
		}
	}},
	{fault: "a raise that claims all since the first grant", id: "raise/first", plant: func(f *faulty) {
		f.answered(func(_, got backend.Lease) backend.Lease {
			if before, ok := f.grantOf(got); ok {
				got.First = before.Token + 1
			}
			return got
		})
	}},
	{fault: "a grant that claims the last token", id: "raise/first", plant: func(f *faulty) {
		f.answered(func(_, got backend.Lease) backend.Lease {
			got.First = max(f.latest(got.Key).Token, 1)
			return got
		})
	}},
	{fault: "a token moved by a Renew in vain", id: "raise/foreign", plant: func(f *faulty) {
		f.renewLost(func(ctx context.Context, l backend.Lease, err error) error {
			_, _ = f.raiseHolder(ctx, l, nil)
			return err
		})
	}},
}
