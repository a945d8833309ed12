package conformance_test

import (
	"context"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Each of these breaks in a way that only shows when many calls are seen
// together.
var historyFaults = []planted{
	{fault: "a grant to two in one of two", id: "history/orders", plant: func(f *faulty) {
		f.refused(func(_ context.Context, want backend.Lease, err error) (backend.Lease, error) {
			if f.every(2) {
				return f.pretend(want)
			}
			return backend.Lease{}, err
		})
	}},
	{fault: "M29 a Renew that is believed after the end", id: "history/orders", plant: func(f *faulty) {
		f.renewLost(func(context.Context, backend.Lease, error) error { return nil })
	}},
	{fault: "M31 a token for each repeat", id: "history/orders", plant: func(f *faulty) {
		f.repeated(func(ctx context.Context, want, holder backend.Lease) (backend.Lease, error) {
			want.Token = max(want.Token, holder.Token+1)
			return f.Backend.Acquire(ctx, want)
		})
	}},
	{fault: "an end a little before the end", id: "history/lapses", plant: func(f *faulty) {
		f.termOf(func(ttl time.Duration) time.Duration { return ttl * 9 / 10 })
	}},
	{fault: "M29 a Renew that is believed after the end", id: "history/lapses", plant: func(f *faulty) {
		f.renewLost(func(context.Context, backend.Lease, error) error { return nil })
	}},
	{fault: "a grant to two in one of a hundred", id: "history/long", plant: func(f *faulty) {
		f.refused(func(_ context.Context, want backend.Lease, err error) (backend.Lease, error) {
			if f.every(100) {
				return f.pretend(want)
			}
			return backend.Lease{}, err
		})
	}},
}
