package mutex

import (
	"context"
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// lead is how long before the end of validity a hold is lost, so that who
// listens hears of it in time.
const lead = time.Millisecond

// term is a lease that was granted or renewed, and how long it may be relied on.
type term struct {
	lease backend.Lease
	slept time.Duration // the meter's answer at lease.Start, or less
}

// term takes a grant of a.want.
func (a *attempt) term(got backend.Lease) term {
	t := term{lease: a.want, slept: a.slept}
	t.lease.Start, t.lease.Token = got.Start, got.Token
	t.lease.TTL = min(got.TTL, a.want.TTL)
	if got.Start.Before(a.want.Start) {
		t.slept -= sleptBetween(got.Start, a.want.Start)
	}
	return t
}

// until is the end of validity as of now: a sleep since Start used it up.
func (t *term) until(now time.Time, m *sleepMeter) time.Time {
	return t.awake(t.lease.Until(), now, m)
}

// ends is the end of the term itself, likewise.
func (t *term) ends(now time.Time, m *sleepMeter) time.Time {
	return t.awake(t.lease.Start.Add(t.lease.TTL), now, m)
}

// awake is when an instant comes that is reckoned from Start.
func (t *term) awake(end, now time.Time, m *sleepMeter) time.Time {
	if d := m.at(now) - t.slept; d >= noticed {
		end = end.Add(-d)
	}
	return end
}

// enough says whether what Wait granted can be held at once. Otherwise an
// Acquire confirms it, which starts the term anew.
func (a *attempt) enough(t term) bool {
	now := time.Now()
	return a.s.lasts(t, t.until(now, a.s.meter).Sub(now)) && !t.ends(now, a.s.meter).Before(now.Add(a.s.o.MinHold))
}

// lasts says whether what is left of a term is worth being held.
func (s *Session) lasts(t term, left time.Duration) bool {
	return left > lead && left >= s.least(t)
}

// least is how much of a term has to be left.
func (s *Session) least(t term) time.Duration {
	if s.o.RenewEvery < 0 {
		return validityOf(s.o.TTL) / 2 // it will not get better
	}
	return validityOf(t.lease.TTL) / 4
}

func validityOf(ttl time.Duration) time.Duration { return ttl - backend.Drift(ttl) }

// lasting renews a grant that would be over before Options.MinHold is: one whose
// term is shorter than what was asked for, or that took long to come. A renewal
// may do that, too, so it is repeated, but not for ever.
func (a *attempt) lasting(ctx context.Context, t term) (term, error) {
	least := min(a.s.o.MinHold, a.s.o.TTL/8*7) // no answer comes in no time
	for range 3 {
		if now := time.Now(); !t.ends(now, a.s.meter).Before(now.Add(least)) {
			break
		}
		a.start()
		t.lease.Start, t.lease.TTL, t.slept = a.want.Start, a.want.TTL, a.slept
		switch err := a.s.b.Renew(ctx, t.lease); {
		case errors.Is(err, ErrLost): // nobody was told that it was had
			return t, &backend.Error{Op: "acquire", Key: a.key, Err: errLate}
		case err != nil:
			return t, named("renew", a.key, err)
		}
	}
	return t, nil
}

// begin makes a hold of a grant of the backend, if it can be relied on.
func (a *attempt) begin(ctx context.Context, t term) (*Hold, error) {
	a.limit = t.lease.Start.Add(a.s.o.MaxHold)
	if a.s.o.MinHold > 0 {
		var err error
		if t, err = a.lasting(ctx, t); err != nil {
			return nil, err
		}
	}
	now, token := time.Now(), t.lease.Token
	first := turns{began: now, next: token}
	if token > 0 {
		first.next++
	}
	return a.hold(ctx, now, t, token, first)
}

// hold makes a hold with a token of its own. What is left of the lease's tokens
// goes to later turns. That it can be relied on is checked as of now, which is fresh.
func (a *attempt) hold(ctx context.Context, now time.Time, t term, token backend.Token, later turns) (*Hold, error) {
	a.want = t.lease // what has to be released if this fails
	valid := t.until(now, a.s.meter)
	if min(valid.Sub(now), a.limit.Sub(now)) <= lead {
		return nil, &backend.Error{Op: "acquire", Key: a.key, Err: errLate}
	}
	h := &Hold{
		s: a.s, key: a.key, gate: a.gate, token: token, term: t, turns: later,
		since: now, limit: a.limit, owed: true,
	}
	if a.s.obs != nil {
		h.link = context.WithoutCancel(ctx)
		a.s.happened(ctx, h.event(OpAcquired), nil)
	}
	h.mu.Lock()
	defer h.leave()
	if !a.s.pass(h, a.byLock) {
		h.lose(now, Closed, nil)
		return nil, ErrClosed
	}
	h.plan()
	h.schedule(valid)
	return h, nil
}
