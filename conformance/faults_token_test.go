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
	{"M17 one token for all", "tokens/over-release", func(f *faulty) {
		f.tokens(func(_, _ backend.Lease) backend.Token { return 7 })
	}},
	{"M18 tokens from the clock alone", "tokens/over-release", func(f *faulty) {
		f.tokens(func(_, _ backend.Lease) backend.Token { return backend.Token(time.Now().UnixMicro()) })
	}},
	{"M27 a counter deleted on release", "tokens/over-release", func(f *faulty) {
		f.counter()
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			f.mu.Lock()
			delete(f.seen, l.Key)
			f.mu.Unlock()
			return release(ctx, l)
		}
	}},
	{"M26 a counter that expires with the lease", "tokens/over-expiry", func(f *faulty) {
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
	{"M24 a counter set back by the refused", "tokens/over-repeats", func(f *faulty) {
		f.counter()
		f.refused(func(_ context.Context, want backend.Lease, err error) (backend.Lease, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.seen[want.Key] = want.Token
			return backend.Lease{}, err
		})
	}},
	{"a floor that is ignored", "tokens/floor", func(f *faulty) {
		f.asked(func(l backend.Lease) backend.Lease {
			l.Token = 0
			return l
		}, func(_, got backend.Lease) backend.Lease { return got })
	}},
	{"M24 a floor without max", "tokens/floor", func(f *faulty) {
		f.tokens(func(want, got backend.Lease) backend.Token {
			if want.Token > 0 {
				return want.Token
			}
			return got.Token
		})
	}},
	{"M25 tokens of fourteen digits", "tokens/exact", func(f *faulty) {
		f.tokens(func(_, got backend.Lease) backend.Token {
			if got.Token > 1e14 {
				return got.Token / 100 * 100
			}
			return got.Token
		})
	}},
	{"M18 tokens from the client's clock", "tokens/fast-clock", func(f *faulty) {
		f.tokens(func(want, _ backend.Lease) backend.Token { return backend.Token(want.Start.UnixMicro()) })
	}},
	{"a raise that is ignored", "raise/larger", func(f *faulty) {
		f.repeated(func(ctx context.Context, want, _ backend.Lease) (backend.Lease, error) {
			want.Token = 0
			return f.Backend.Acquire(ctx, want)
		})
	}},
	{"M24 a raise without max", "raise/smaller", func(f *faulty) {
		f.repeated(func(ctx context.Context, want, _ backend.Lease) (backend.Lease, error) {
			got, err := f.Backend.Acquire(ctx, want)
			got.Token = want.Token
			return got, err
		})
	}},
	{"M38 a raise that adds", "raise/repeat", func(f *faulty) {
		f.repeated(func(ctx context.Context, want, holder backend.Lease) (backend.Lease, error) {
			if want.Token == holder.Token {
				want.Token++
			}
			return f.Backend.Acquire(ctx, want)
		})
	}},
	{"a raise that is not stored", "raise/next-above", func(f *faulty) {
		f.repeated(func(ctx context.Context, want, holder backend.Lease) (backend.Lease, error) {
			to := max(want.Token, holder.Token)
			want.Token = 0
			got, err := f.Backend.Acquire(ctx, want)
			got.Token = to
			return got, err
		})
	}},
	{"a Release that looks at the token", "raise/next-above", func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if l.Token != f.latest(l.Key).Token {
				return lost("release", l)
			}
			return release(ctx, l)
		}
	}},
	{"a token moved by a Renew in vain", "raise/foreign", func(f *faulty) {
		f.renewLost(func(ctx context.Context, l backend.Lease, err error) error {
			_, _ = f.raiseHolder(ctx, l, nil)
			return err
		})
	}},
}
