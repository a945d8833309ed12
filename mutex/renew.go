package mutex

import (
	"context"
	"errors"
	"time"

	"github.com/distmutex/distmutex/internal/jitter"
)

// plan sets the time of the next renewal after the last one succeeded: a third
// of the validity after its start, less up to a tenth, so that processes that began
// together do not stay together. It lies on a grid that is the session's own: what is
// due within a step of it is renewed at once, and a backend may send it as one.
func (h *Hold) plan() {
	valid := validityOf(h.term.lease.TTL)
	every := h.s.o.RenewEvery
	if every < 0 || !h.term.lease.Until().Before(h.limit) {
		h.renewAt = time.Time{}
		return
	}
	if every == 0 || every >= valid {
		every = valid / 3
	}
	step := every / 128
	at := h.term.lease.Start.Add(every - h.jitter(every/10-step))
	h.renewAt = h.s.meter.base.Add(at.Sub(h.s.meter.base).Truncate(step))
}

// replan sets the time of the next try after one failed: soon, then less often,
// and always before half of what is left has passed.
func (h *Hold) replan(now, valid time.Time) {
	wait := validityOf(h.s.o.TTL) / 64 << min(h.misses, 3)
	wait = min(wait, h.within(valid).Sub(now)/2)
	h.misses++
	h.renewAt = now.Add(max(wait-h.jitter(wait/2), time.Millisecond))
}

// jitter draws a time below most.
func (h *Hold) jitter(most time.Duration) time.Duration {
	h.draws++
	return jitter.Of(h.term.lease.Owner, int(h.draws), most)
}

// schedule sets what is to be done next: a renewal, or noticing the loss. The
// lease is valid until then if nothing more is renewed.
func (h *Hold) schedule(valid time.Time) {
	at := h.within(valid).Add(-lead)
	if !h.renewAt.IsZero() && !h.queued && !h.busy && h.renewAt.Before(at) {
		at = h.renewAt
	}
	h.s.agenda.set(h, at)
}

// tick is what the agenda has done: notice the loss, ask for a renewal, release the
// lease that MinHold or Linger has kept, or forget the one that was not confirmed.
func (h *Hold) tick() {
	if h.renewalDue() {
		h.s.renewals.serve(h, (*Hold).renew)
	}
}

// renewalDue does all that tick does without calling the backend.
func (h *Hold) renewalDue() bool {
	h.mu.Lock()
	defer h.leave()
	now := time.Now()
	valid := h.expire(now)
	if h.over {
		h.afterwards()
		return false
	}
	due := !h.renewAt.IsZero() && !h.queued && !h.busy && !now.Before(h.renewAt)
	h.queued = h.queued || due
	h.schedule(valid)
	return due
}

// renew makes one attempt to start the term anew, while the agenda has the loss.
// It has a context that nobody cancels but the end of the hold, and that leaves
// time for another attempt.
func (h *Hold) renew() {
	h.mu.Lock()
	defer h.leave()
	h.queued = false
	now := time.Now()
	valid := h.expire(now)
	if h.over {
		return
	}
	t := h.term
	t.lease.Start, t.lease.TTL, t.slept = now, h.s.o.TTL, h.s.meter.at(now)
	ctx, cancel := context.WithTimeout(h.base(), h.within(valid).Sub(now)/2)
	defer cancel()
	h.busy, h.abort = true, cancel
	h.mu.Unlock()

	octx, end := h.s.observe(ctx, h.event(OpRenew))
	err := h.s.b.Renew(octx, t.lease)
	switch {
	case err == nil || errors.Is(err, ErrLost) || ctx.Err() == nil:
		err = named("renew", h.Key(), err)
	default:
		err = unanswered("renew", h.Key(), context.Background(), err)
	}
	end(err)

	h.mu.Lock()
	h.abort = nil
	h.yield()
	h.renewed(t, err)
}

// renewed takes the answer to a renewal. It changes nothing if the hold is over.
func (h *Hold) renewed(t term, err error) {
	now := time.Now()
	valid := h.expire(now)
	if h.over {
		return
	}
	switch {
	case err == nil:
		h.misses, h.miss = 0, nil
		if later := t.until(now, h.s.meter); later.After(valid) {
			h.term, valid = t, later
		}
		h.plan()
	case errors.Is(err, ErrLost):
		h.lose(now, Taken, err)
		return
	default:
		h.miss = err
		h.replan(now, valid)
	}
	h.schedule(valid)
}
