package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// refused replaces what happens when an Acquire was refused.
func (f *faulty) refused(then func(context.Context, backend.Lease, error) (backend.Lease, error)) {
	acquire := f.acquire
	f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
		got, err := acquire(ctx, want)
		if errors.Is(err, backend.ErrHeld) {
			return then(ctx, want, err)
		}
		return got, err
	}
}

// pretend grants what was refused.
func (f *faulty) pretend(want backend.Lease) (backend.Lease, error) {
	want.Token = f.latest(want.Key).Token + 1
	return want, nil
}

func (f *faulty) keys(in func(string) string) {
	f.all(func(l backend.Lease) backend.Lease {
		l.Key = in(l.Key)
		return l
	})
}

func (f *faulty) owners(in func(string) string) {
	f.all(func(l backend.Lease) backend.Lease {
		l.Owner = in(l.Owner)
		return l
	})
}

var seed = maphash.MakeSeed()

var holdFaults = []planted{
	{fault: "M01 a grant without NX", id: "exclusion/one-holder", plant: func(f *faulty) {
		f.refused(func(ctx context.Context, want backend.Lease, _ error) (backend.Lease, error) {
			_ = f.Backend.Release(ctx, f.latest(want.Key))
			return f.Backend.Acquire(ctx, want)
		})
	}},
	{fault: "M16 the host's name for an owner", id: "exclusion/one-holder", plant: func(f *faulty) {
		f.owners(func(string) string { return "host" })
	}},
	{fault: "a look and then a grant", id: "exclusion/simultaneous", plant: func(f *faulty) {
		f.refused(func(_ context.Context, want backend.Lease, err error) (backend.Lease, error) {
			if time.Since(f.latest(want.Key).Start) < time.Millisecond {
				return f.pretend(want) // it had looked before
			}
			return backend.Lease{}, err
		})
	}},
	{fault: "a grant to two in one of eleven", id: "exclusion/contention", plant: func(f *faulty) {
		f.refused(func(_ context.Context, want backend.Lease, err error) (backend.Lease, error) {
			if f.every(11) {
				return f.pretend(want)
			}
			return backend.Lease{}, err
		})
	}},
	{fault: "an end a little before the end", id: "exclusion/abandoned", plant: func(f *faulty) {
		f.termOf(func(ttl time.Duration) time.Duration { return ttl * 9 / 10 })
	}},
	{fault: "keys that share four locks", id: "exclusion/many-keys", plant: func(f *faulty) {
		f.keys(func(key string) string { return fmt.Sprint(maphash.String(seed, key) % 4) })
	}},
	{fault: "keys returned in lower case", id: "keys/any-bytes", plant: func(f *faulty) {
		f.asked(func(l backend.Lease) backend.Lease { return l }, func(_, got backend.Lease) backend.Lease {
			got.Key = strings.ToLower(got.Key)
			return got
		})
	}},
	{fault: "keys with their spaces trimmed", id: "keys/apart", plant: func(f *faulty) { f.keys(strings.TrimSpace) }},
	{fault: "keys cut at 255 bytes", id: "keys/apart", plant: func(f *faulty) {
		f.keys(func(key string) string { return key[:min(len(key), 255)] })
	}},
	{fault: "keys taken for UTF-8", id: "keys/apart", plant: func(f *faulty) {
		f.keys(func(key string) string { return strings.ToValidUTF8(key, "?") })
	}},
	{fault: "M46 parts of keys that collide", id: "keys/apart", plant: func(f *faulty) {
		f.keys(func(key string) string { return strings.ReplaceAll(key, ":", "") })
	}},
	{fault: "owners compared by prefix", id: "owners/whole", plant: func(f *faulty) {
		f.owners(func(owner string) string { return owner[:min(len(owner), 34)] })
	}},
	{fault: "owners as C strings", id: "owners/whole", plant: func(f *faulty) {
		f.owners(func(owner string) string {
			before, _, nul := strings.Cut(owner, "\x00")
			if nul {
				return before
			}
			return owner
		})
	}},
	{fault: "owners without regard to case", id: "owners/whole", plant: func(f *faulty) { f.owners(strings.ToLower) }},
	{fault: "a term rounded up to seconds", id: "acquire/grant", plant: func(f *faulty) {
		f.asked(func(l backend.Lease) backend.Lease { return l }, func(_, got backend.Lease) backend.Lease {
			got.TTL = (got.TTL + time.Second - 1).Truncate(time.Second)
			return got
		})
	}},
	{fault: "no tokens, and no word of it", id: "acquire/grant", plant: func(f *faulty) {
		f.tokens(func(_, _ backend.Lease) backend.Token { return 0 })
	}},
	{fault: "M10 M30 a term counted from the reply", id: "acquire/start", plant: func(f *faulty) {
		f.asked(func(l backend.Lease) backend.Lease { return l }, func(_, got backend.Lease) backend.Lease {
			got.Start = time.Now()
			return got
		})
	}},
	{fault: "M38 its own value taken for another's", id: "acquire/repeat", plant: func(f *faulty) {
		acquire := f.acquire
		f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			if f.held(want) {
				return backend.Lease{}, &backend.Error{Op: "acquire", Key: want.Key, Err: backend.ErrHeld}
			}
			return acquire(ctx, want)
		}
	}},
	{fault: "M31 a token for each repeat", id: "acquire/repeat", plant: func(f *faulty) {
		f.tokens(func(want, _ backend.Lease) backend.Token { return f.latest(want.Key).Token + 1 })
	}},
	{fault: "an answer to the repeat from memory", id: "acquire/repeat-renews", plant: func(f *faulty) {
		acquire := f.acquire
		f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			if f.held(want) {
				return f.latest(want.Key), nil
			}
			return acquire(ctx, want)
		}
	}},
	{fault: "a term that the repeat shortens", id: "acquire/repeat-never-shortens", plant: func(f *faulty) {
		acquire := f.acquire
		f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			first := f.latest(want.Key)
			if !f.held(want) {
				return acquire(ctx, want)
			}
			_ = f.Backend.Release(ctx, want)
			got, err := acquire(ctx, want)
			got.Token = first.Token
			return got, err
		}
	}},
	{fault: "an attempt that waits for the holder", id: "acquire/refusal-is-prompt", plant: func(f *faulty) {
		f.refused(func(_ context.Context, _ backend.Lease, err error) (backend.Lease, error) {
			time.Sleep(5 * time.Second)
			return backend.Lease{}, err
		})
	}},
	{fault: "a refused attempt that goes on", id: "acquire/refusal-leaves-nothing", plant: func(f *faulty) {
		f.refused(func(ctx context.Context, want backend.Lease, err error) (backend.Lease, error) {
			go func() { _, _ = f.Backend.Wait(ctx, want) }()
			return backend.Lease{}, err
		})
	}},
	{fault: "M24 a counter moved by the refused", id: "acquire/refusal-changes-nothing", plant: func(f *faulty) { f.refused(f.raiseHolder) }},
	{fault: "M24 a counter moved by another", id: "raise/foreign", plant: func(f *faulty) { f.refused(f.raiseHolder) }},
}

// raiseHolder moves the holder's token to the floor of one who was refused.
func (f *faulty) raiseHolder(ctx context.Context, want backend.Lease, err error) (backend.Lease, error) {
	holder := f.latest(want.Key)
	holder.Token = max(holder.Token, want.Token)
	_ = f.Backend.Renew(ctx, holder)
	return backend.Lease{}, err
}

// termOf has the inner backend grant another term than it says.
func (f *faulty) termOf(other func(time.Duration) time.Duration) {
	f.asked(func(l backend.Lease) backend.Lease {
		if backend.ValidateTTL(l.TTL) == nil {
			l.TTL = min(max(other(l.TTL).Truncate(time.Millisecond), backend.MinTTL), backend.MaxTTL)
		}
		return l
	}, func(want, got backend.Lease) backend.Lease {
		got.TTL = want.TTL
		return got
	})
}

var termFaults = []planted{
	{fault: "a term of half the length", id: "term/lasts", plant: func(f *faulty) {
		f.termOf(func(ttl time.Duration) time.Duration { return ttl / 2 })
	}},
	{fault: "M02 no expiry", id: "term/ends", plant: func(f *faulty) {
		f.termOf(func(time.Duration) time.Duration { return backend.MaxTTL })
	}},
	{fault: "M03 milliseconds taken for seconds", id: "term/ends", plant: func(f *faulty) {
		f.termOf(func(ttl time.Duration) time.Duration { return ttl * 1000 })
	}},
	{fault: "a refusal that renews the holder", id: "term/ends", plant: func(f *faulty) { f.refused(f.raiseHolder) }},
	{fault: "a shortest term of a second", id: "term/shortest", plant: func(f *faulty) {
		acquire := f.acquire
		f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			if want.TTL < time.Second {
				return backend.Lease{}, &backend.InvalidError{Field: "TTL", Reason: "is less than a second"}
			}
			return acquire(ctx, want)
		}
	}},
	{fault: "a client that thinks it holds for ever", id: "term/again", plant: func(f *faulty) {
		acquire, release := f.acquire, f.release
		f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			if f.seen[want.Key] != 0 {
				return backend.Lease{}, &backend.Error{Op: "acquire", Key: want.Key, Err: backend.ErrHeld}
			}
			got, err := acquire(ctx, want)
			f.seen[want.Key] = got.Token
			return got, err
		}
		f.release = func(ctx context.Context, l backend.Lease) error {
			delete(f.seen, l.Key)
			return release(ctx, l)
		}
	}},
}
