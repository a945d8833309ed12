package mutex

import (
	"context"
	"errors"
	"time"
)

// Unlock ends the hold and releases the lock, or leaves it to another goroutine
// of the session that waits for it (Options.HandOver).
//
// It returns nil when that is confirmed, and a *LostError if the hold was lost
// before. After any other error the outcome is unknown; the key is then free at
// the end of its term at the latest, and Unlock can be called again to try once
// more. Otherwise a further Unlock returns the first result.
//
// It works with a ctx that has ended: it waits for the answer until the later of
// ctx's end and one second, but not past the end of validity. Either way,
// renewals stop at once, and when Unlock returns other goroutines of the
// session can have the lock.
func (h *Hold) Unlock(ctx context.Context) error {
	now := time.Now()
	limit, first, done, err := h.giveUp(ctx, now)
	if done {
		return err
	}
	h.mu.Lock()
	defer h.leave()
	if !limit.After(now) {
		limit = now.Add(grace) // a repeated Unlock
	}
	bound := &h.call
	if !first {
		bound = new(callCtx)
	}
	bound.Context, bound.begun, bound.limit = ctx, now, limit
	defer bound.stop()
	err = h.release(ctx, bound)
	if first {
		h.s.open(h, !h.settled)
	} else if h.settled {
		h.s.forget(h)
	}
	return err
}

// giveUp ends the hold for its holder. It says until when the lease is valid,
// whether this is the first Unlock, and whether nothing is left to be waited for.
func (h *Hold) giveUp(ctx context.Context, now time.Time) (valid time.Time, first, done bool, err error) {
	h.mu.Lock()
	defer h.leave()
	valid = h.expire(now)
	switch {
	case h.settled:
		return valid, false, true, h.result
	case h.given:
		return valid, false, false, nil
	}
	h.given = true
	kept := h.since.Add(h.s.o.MinHold)
	switch {
	case h.err != nil:
		h.settle(h.err)
		if h.owed && h.err.Reason != Closed {
			h.discard(ctx)
		}
	case now.Before(kept):
		h.finish(now)
		h.settle(nil)
		h.parked = true
		h.s.agenda.set(h, kept)
	default:
		h.finish(now)
		if !h.bequeath(now, valid) {
			return valid, true, false, nil
		}
		h.settle(nil)
		return valid, true, true, nil
	}
	h.s.open(h, false)
	return valid, true, true, h.result
}

func (h *Hold) settle(result error) { h.settled, h.final, h.result = true, true, result }

// discard releases the lease in the background, unless the session is closed:
// then Close has done so, or MinHold asks it to leave the key.
func (h *Hold) discard(ctx context.Context) {
	if h.s.begin() {
		h.owed = false
		h.s.abandon(ctx, h.term.lease, func(ctx context.Context) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.turn(ctx)
		})
		h.s.end()
	}
}

// afterwards is what tick does when the hold is over.
func (h *Hold) afterwards() {
	switch {
	case h.parked && !time.Now().Before(h.since.Add(h.s.o.MinHold)):
		h.parked = false
		h.discard(h.base())
	case h.unsure:
		h.s.forget(h)
	default:
		h.lingered()
	}
}

// release releases the lease and waits for the answer as long as bound lasts.
// Of many that try at once, one does, and the others wait for its result.
func (h *Hold) release(ctx, bound context.Context) error {
	err := h.turn(bound)
	if err != nil {
		err = unanswered("unlock", h.key, ctx, err)
	} else {
		defer h.yield()
		if h.settled {
			return h.result
		}
		err = h.send(ctx, bound)
	}
	switch {
	case err == nil:
		h.owed = false
		h.settle(nil)
	case errors.Is(err, ErrLost):
		h.owed = false
		if h.err == nil {
			h.err = &LostError{Key: h.key, Reason: Taken, Err: err}
		}
		h.settle(h.err)
	default:
		h.final, h.unsure = true, true
		now := time.Now()
		h.s.agenda.set(h, h.term.until(now, h.s.meter)) // then it is forgotten
		return err
	}
	return h.result
}

// send calls Release.
func (h *Hold) send(ctx, bound context.Context) error {
	lease := h.term.lease
	h.mu.Unlock()
	octx, end := h.s.observe(bound, h.event(OpUnlock))
	err := h.s.b.Release(octx, lease)
	switch {
	case err == nil:
	case errors.Is(err, ErrLost) || bound.Err() == nil:
		err = named("unlock", lease.Key, err)
	default:
		err = unanswered("unlock", lease.Key, ctx, err)
	}
	end(err)
	h.mu.Lock()
	return err
}

// close ends the hold because its session ends, and releases the lease, unless
// it is kept by MinHold.
func (h *Hold) close(ctx, bound context.Context) error {
	h.closed()
	h.mu.Lock()
	defer h.leave()
	if !h.owed {
		return nil // left alone, or under way in the background
	}
	if err := h.turn(bound); err != nil {
		return unanswered("unlock", h.key, ctx, err)
	}
	defer h.yield()
	if !h.owed {
		return nil
	}
	err := h.send(ctx, bound)
	if err == nil || errors.Is(err, ErrLost) {
		h.owed = false
		return nil
	}
	return err
}

// closed ends the hold, and tells so, before it is released.
func (h *Hold) closed() {
	h.mu.Lock()
	defer h.leave()
	now := time.Now()
	h.expire(now)
	if h.parked || !h.given && now.Before(h.since.Add(h.s.o.MinHold)) {
		h.owed, h.parked = false, false
	}
	h.lose(now, Closed, nil)
}

// turn waits until no call for this owner is under way, and marks that one is.
func (h *Hold) turn(ctx context.Context) error {
	for h.busy {
		if h.free == nil {
			h.free = make(chan struct{})
		}
		free := h.free
		h.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
		}
		h.mu.Lock()
		if h.busy && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	h.busy = true
	return nil
}

// yield lets the next one have its turn.
func (h *Hold) yield() {
	h.busy = false
	if h.free != nil {
		close(h.free)
		h.free = nil
	}
}
