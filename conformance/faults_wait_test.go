package conformance_test

import (
	"context"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var waitFaults = []planted{
	{fault: "a Wait that does not look first", id: "wait/free", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			time.Sleep(5 * time.Second)
			return wait(ctx, want)
		}
	}},
	{fault: "a holder that waits behind itself", id: "wait/own", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			if f.held(want) {
				want.Owner += "'"
			}
			return wait(ctx, want)
		}
	}},
	{fault: "M35 a waiter not woken by a Release", id: "wait/release", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			holder := f.latest(want.Key)
			time.Sleep(time.Until(holder.Start.Add(holder.TTL)))
			return wait(ctx, want)
		}
	}},
	{fault: "M49 expiry seen only by those who ask", id: "wait/expiry", plant: func(f *faulty) {
		f.termOf(func(time.Duration) time.Duration { return backend.MaxTTL })
		acquire := f.acquire
		f.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			if holder := f.latest(want.Key); holder.Owner != "" && holder.Ended(time.Now()) {
				_ = f.Backend.Release(ctx, holder)
			}
			return acquire(ctx, want)
		}
	}},
	{fault: "M48 a hand-over without a token of its own", id: "wait/grant", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			before := f.latest(want.Key)
			got, err := wait(ctx, want)
			got.Token = before.Token
			return got, err
		}
	}},
	{fault: "a waiter's floor that is ignored", id: "wait/floor", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			want.Token = 0
			return wait(ctx, want)
		}
	}},
	{fault: "M48 a hand-over beyond the term", id: "wait/term", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			came := time.Now()
			got, err := wait(ctx, want)
			if err == nil { // the server counted from when the waiter came
				time.AfterFunc(time.Until(came.Add(got.TTL)), func() { _ = f.Backend.Release(context.Background(), got) })
			}
			return got, err
		}
	}},
	{fault: "a hand-over without an end", id: "wait/term", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			long := want
			long.TTL = backend.MaxTTL
			got, err := wait(ctx, long)
			got.TTL = min(got.TTL, want.TTL)
			return got, err
		}
	}},
	{fault: "a Wait that no cancel ends", id: "wait/cancel", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			return wait(context.WithoutCancel(ctx), want)
		}
	}},
	{fault: "a holder that nobody saw", id: "wait/seen", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			got, err := wait(ctx, want)
			if err != nil {
				got.Key = want.Key
			}
			return got, err
		}
	}},
	{fault: "M07 a Release only where a grant was told", id: "wait/cancel-race", plant: skipUnknown},
	{fault: "a grant told to two", id: "line/many", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			got, err := wait(ctx, want)
			if err == nil && f.every(9) {
				_ = f.Backend.Release(ctx, got)
			}
			return got, err
		}
	}},
	{fault: "M35 a grant told to nobody", id: "line/hand-over", plant: func(f *faulty) {
		wait := f.wait
		f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			got, err := wait(ctx, want)
			if err == nil && f.every(5) {
				want.Owner += "'" // comes once more, behind its own grant
				return wait(ctx, want)
			}
			return got, err
		}
	}},
	{fault: "a place in line that outlives its waiter", id: "line/cancelled-head", plant: func(f *faulty) {
		leaveGhost(f, func(l backend.Lease) backend.Lease {
			l.Owner += "'" // out of reach of the Release
			return l
		})
	}},
	{fault: "a dead waiter that holds for ever", id: "line/dead-head", plant: func(f *faulty) {
		leaveGhost(f, func(l backend.Lease) backend.Lease {
			l.TTL = backend.MaxTTL
			return l
		})
	}},
}

// leaveGhost leaves one in line in the place of each that was cancelled.
func leaveGhost(f *faulty, ghost func(backend.Lease) backend.Lease) {
	wait := f.wait
	f.wait = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
		type answer struct {
			got backend.Lease
			err error
		}
		answered := make(chan answer, 1)
		go func() {
			got, err := wait(context.WithoutCancel(ctx), ghost(want))
			got.Owner = want.Owner
			answered <- answer{got, err}
		}()
		select {
		case a := <-answered:
			return a.got, a.err
		case <-ctx.Done():
			return backend.Lease{}, &backend.Error{Op: "wait", Key: want.Key, Err: ctx.Err()}
		}
	}
}
