package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Acquire makes one attempt, in one round trip. Plain takes a second one if the
// key is this owner's already.
//
// With ErrHeld, the lease returned tells what was seen: TTL is what is left of
// the holder's term (zero: it has none), Token the last token of the key.
func (b *Backend) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := b.check(want); err != nil {
		return backend.Lease{}, err
	}
	b.advise(ctx)
	owner := &secret{owner: want.Owner}
	r, err := b.ask(ctx, want, owner, func(ctx context.Context) (reply, error) { return b.attempt(ctx, want, owner) })
	switch {
	case err != nil:
		return backend.Lease{}, b.fail(ctx, "acquire", want.Key, err)
	case r.uncounted != nil:
		return backend.Lease{}, b.fail(ctx, "acquire", want.Key, r.uncounted)
	case r.status == yes && r.token < want.Token:
		return backend.Lease{}, b.fail(ctx, "acquire", want.Key, fmt.Errorf("%w: a token below the floor", errAnswer))
	case r.status == yes:
		want.Token, want.First = r.token, r.first
		return want, nil
	}
	b.sweep(want)
	seen := backend.Lease{Key: want.Key, TTL: max(r.left, 0), Token: r.token}
	return seen, b.fail(ctx, "acquire", want.Key, backend.ErrHeld)
}

// Renew starts the term of a held lease anew, in one round trip where the server
// has SET … IFEQ or runs scripts. A term that has more left than held.TTL may be
// shortened to that.
func (b *Backend) Renew(ctx context.Context, held backend.Lease) error {
	if err := b.check(held); err != nil {
		return err
	}
	r, err := b.send(ctx, held, func(ctx context.Context) (reply, error) { return b.renew(ctx, held) })
	switch {
	case err != nil:
		return b.fail(ctx, "renew", held.Key, err)
	case r.status != yes:
		return b.fail(ctx, "renew", held.Key, backend.ErrLost)
	}
	return nil
}

// Release gives a lease up. It is carried out even if ctx has ended before or
// ends meanwhile: behind what an earlier call left on its way.
func (b *Backend) Release(ctx context.Context, held backend.Lease) error {
	if err := b.check(held); err != nil {
		return err
	}
	began := time.Now()
	r, err := b.release(ctx, held)
	switch {
	case err != nil:
		return b.fail(ctx, "release", held.Key, err)
	case r.status == yes, held.Token == 0, r.status == gone && !held.Ended(began):
		return nil
	}
	return b.fail(ctx, "release", held.Key, backend.ErrLost)
}

func (b *Backend) release(ctx context.Context, held backend.Lease) (reply, error) {
	last, _ := b.lanes.get(held)
	return await(ctx, &b.calls, b.turn(held, true), func() (reply, error) {
		if last != nil {
			<-last
		}
		var keep time.Duration
		if _, doubt := b.lanes.get(held); doubt || held.Token == 0 {
			keep = b.life(held)
		}
		owner := &secret{owner: held.Owner}
		r, err := b.giveUp(context.WithoutCancel(ctx), held, owner, keep)
		if err != nil && owner.doubtful(err) {
			b.lanes.spend(held, b.life(held))
		}
		return r, err
	})
}

// sweep undoes what may still come of an attempt that was refused for good, so
// that nobody has to release it.
func (b *Backend) sweep(want backend.Lease) {
	if _, doubt := b.lanes.get(want); !doubt && b.places.of(want) == "" {
		b.lanes.drop(want)
		return
	}
	want.Token, want.Ticket = 0, "" // its place stays
	b.undo(want)
}

// undo releases without waiting for it. That failing, the term ends it.
func (b *Backend) undo(l backend.Lease) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = b.release(ctx, l)
}

// send runs a command in the owner's lane: behind what an earlier call left on
// its way. It sends nothing once ctx has ended, nor where a release may be on its
// way for good: then the key is not the owner's, whatever turns up.
func (b *Backend) send(ctx context.Context, l backend.Lease, f func(context.Context) (reply, error)) (reply, error) {
	if ctx.Err() != nil {
		return reply{}, ctx.Err()
	}
	last, _ := b.lanes.get(l)
	return await(ctx, &b.calls, b.turn(l, false), func() (reply, error) {
		if last != nil {
			select {
			case <-last:
			case <-ctx.Done():
				return reply{}, ctx.Err()
			}
		}
		switch spent, brief := b.lanes.bars(l); {
		case spent:
			return reply{status: gone}, nil
		case brief:
			return reply{}, errBrief
		}
		return f(quiet{ctx})
	})
}

// ask sends what may end in a grant to owner, and notes if it may still be on its
// way when it has ended.
func (b *Backend) ask(ctx context.Context, want backend.Lease, owner *secret, f func(context.Context) (reply, error)) (reply, error) {
	return b.send(ctx, want, func(ctx context.Context) (reply, error) {
		r, err := f(ctx)
		if owner.doubtful(err) {
			b.lanes.suspect(want, b.life(want))
		}
		return r, err
	})
}

func (b *Backend) turn(l backend.Lease, final bool) *turn {
	return &turn{&b.lanes, l, b.life(l), final}
}

// life is how long something of a lease may still turn up: a request that was
// held up somewhere, and the term that it would begin.
func (b *Backend) life(l backend.Lease) time.Duration { return l.TTL + b.maxTTL }
