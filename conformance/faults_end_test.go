package conformance_test

import (
	"context"
	"errors"

	"github.com/distmutex/distmutex/backend"
)

// renewLost replaces what happens when a Renew was refused.
func (f *faulty) renewLost(then func(context.Context, backend.Lease, error) error) {
	renew := f.renew
	f.renew = func(ctx context.Context, l backend.Lease) error {
		err := renew(ctx, l)
		if errors.Is(err, backend.ErrLost) {
			return then(ctx, l, err)
		}
		return err
	}
}

// recreate is a Renew by way of SET NX.
func recreate(f *faulty) {
	f.renewLost(func(ctx context.Context, l backend.Lease, err error) error {
		if _, taken := f.Backend.Acquire(ctx, l); taken != nil {
			return err
		}
		return nil
	})
}

func lost(op string, l backend.Lease) error {
	return &backend.Error{Op: op, Key: l.Key, Err: backend.ErrLost}
}

// skipUnknown is a Release that only looks where a grant was told of.
func skipUnknown(f *faulty) {
	release := f.release
	f.release = func(ctx context.Context, l backend.Lease) error {
		if l.Token == 0 {
			return nil
		}
		return release(ctx, l)
	}
}

var endFaults = []planted{
	{fault: "a Renew that is believed, not done", id: "renew/extends", plant: func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error {
			if f.latest(l.Key).Owner == l.Owner {
				return nil
			}
			return renew(ctx, l)
		}
	}},
	{fault: "a Renew that keeps to the first term", id: "renew/longer", plant: func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error {
			l.TTL = min(l.TTL, f.latest(l.Key).TTL)
			return renew(ctx, l)
		}
	}},
	{fault: "a Renew that works once", id: "renew/repeat", plant: func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error {
			if f.seen[l.Owner]++; f.seen[l.Owner] > 1 {
				return lost("renew", l)
			}
			return renew(ctx, l)
		}
	}},
	{fault: "M31 a Renew that moves the token", id: "renew/keeps-token", plant: func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error {
			l.Token++
			return renew(ctx, l)
		}
	}},
	{fault: "a Renew that asserts no token", id: "renew/asserts-token", plant: func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error {
			l.Token = 0
			return renew(ctx, l)
		}
	}},
	{fault: "a Renew of whoever holds", id: "renew/foreign", plant: func(f *faulty) {
		renew := f.renew
		f.renew = func(ctx context.Context, l backend.Lease) error {
			if holder := f.latest(l.Key); holder.Owner != "" {
				l.Owner = holder.Owner
			}
			return renew(ctx, l)
		}
	}},
	{fault: "M28 a Renew that re-creates", id: "renew/after-release", plant: recreate},
	{fault: "M28 a Renew that re-creates", id: "renew/after-expiry", plant: recreate},
	{fault: "a Renew that takes the key back", id: "renew/after-another", plant: func(f *faulty) {
		f.renewLost(func(ctx context.Context, l backend.Lease, err error) error {
			if !f.held(l) || f.latest(l.Key).Owner == l.Owner {
				return err
			}
			_ = f.Backend.Release(ctx, f.latest(l.Key))
			_, err = f.Backend.Acquire(ctx, l)
			return err
		})
	}},
	{fault: "a Release that is believed, not done", id: "release/frees", plant: func(f *faulty) {
		f.release = func(context.Context, backend.Lease) error { return nil }
	}},
	{fault: "a Release that says lost when repeated", id: "release/repeat", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if f.seen[l.Owner]++; f.seen[l.Owner] > 1 {
				return lost("release", l)
			}
			return release(ctx, l)
		}
	}},
	{fault: "M43 a Release by name", id: "release/spares-next", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if f.held(l) { // by this client, whoever holds now
				l.Owner = f.latest(l.Key).Owner
			}
			return release(ctx, l)
		}
	}},
	{fault: "M05 a Release without a look at the owner", id: "release/foreign", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if holder := f.latest(l.Key); holder.Owner != "" {
				l.Owner = holder.Owner
			}
			return release(ctx, l)
		}
	}},
	{fault: "M42 a loss that is not told", id: "release/after-expiry", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if err := release(ctx, l); !errors.Is(err, backend.ErrLost) {
				return err
			}
			return nil
		}
	}},
	{fault: "M42 a loss to another that is not told", id: "release/taken", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			err := release(ctx, l)
			if errors.Is(err, backend.ErrLost) && f.latest(l.Key).Owner != l.Owner {
				return nil
			}
			return err
		}
	}},
	{fault: "an end of the term that no Renew moves", id: "release/after-renewal", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if first := f.latest(l.Key); first.Owner == l.Owner {
				l.TTL, l.Start = first.TTL, first.Start
			}
			return release(ctx, l)
		}
	}},
	{fault: "M07 a Release only where a grant was told", id: "release/never-granted", plant: skipUnknown},
	{fault: "a loss told to one who had nothing", id: "release/never-granted", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if f.latest(l.Key).Owner != l.Owner {
				return lost("release", l)
			}
			return release(ctx, l)
		}
	}},
	{fault: "a Release of the holder by one who got nothing", id: "release/never-granted", plant: func(f *faulty) {
		release := f.release
		f.release = func(ctx context.Context, l backend.Lease) error {
			if holder := f.latest(l.Key); l.Token == 0 && holder.Owner != "" {
				l.Owner = holder.Owner
			}
			return release(ctx, l)
		}
	}},
}
