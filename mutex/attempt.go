package mutex

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/distmutex/distmutex/backend"
)

// lock gets the lock of key, or says why not. It is all of Lock, TryLock, Hold
// and TryHold.
func (s *Session) lock(ctx context.Context, key string, try, byLock bool) (h *Hold, err error) {
	if err := backend.ValidateKey(key); err != nil {
		return nil, err
	}
	if !s.begin() {
		return nil, named("lock", key, ErrClosed)
	}
	defer s.end()
	ctx, end := s.observe(ctx, Event{Op: OpLock, Key: key, Try: try})
	defer func() { end(err) }()

	a := &attempt{s: s, key: key, try: try, byLock: byLock}
	a.call = callCtx{Context: ctx, closing: s.closing} // Close ends it too
	defer a.call.stop()
	if h, err = a.run(); err != nil {
		return nil, a.failure(ctx, err)
	}
	return h, nil
}

// attempt is one call of Lock and the state of its attempts.
type attempt struct {
	s           *Session
	key         string
	try, byLock bool
	call        callCtx

	gate   *gate
	place  *list.Element // in the line at the gate
	passed chan struct{} // closed when the gate was passed after a wait
	from   *Hold         // who left its lease to this attempt
	apart  bool          // keep off the key for a moment

	want  backend.Lease
	slept time.Duration // at want.Start
	limit time.Time     // where MaxHold ends for what comes of it
	owed  bool          // want must be released if nothing comes of it
	queue bool          // Wait was called: so even after a refusal, to leave the line

	contended bool // somebody else was seen to hold the lock
	hasty     int  // how often in a row Wait returned nearly at once
	pace      backoff.BackOff
}

func (a *attempt) run() (*Hold, error) {
	ctx := &a.call
	if err := ctx.Context.Err(); err != nil {
		return nil, err // nothing is sent
	}
	if err := a.enter(ctx.Context); err != nil {
		a.contended = true
		return nil, err
	}
	h, err := a.through(ctx)
	if err != nil {
		if a.owed {
			a.s.abandon(ctx, a.want, nil)
		}
		a.quit()
	}
	return h, err
}

// through makes attempts until one succeeds or there is a reason to give up.
func (a *attempt) through(ctx context.Context) (*Hold, error) {
	if a.from != nil {
		if h, err := a.succeed(ctx); h != nil || err != nil {
			return h, err
		}
	}
	if a.apart && !sleep(ctx, apartFor) {
		return nil, ctx.Err()
	}
	a.want = backend.Lease{Key: a.key, TTL: a.s.o.TTL, Owner: a.s.owners.next()}
	for waits := !a.try && a.s.rush(a.key).expected(); ; waits = true {
		if waits {
			switch t, good, err := a.wait(ctx); {
			case err != nil:
				return nil, err
			case good:
				return a.begin(ctx, t)
			}
		}
		t, err := a.acquire(ctx)
		if err == nil {
			return a.begin(ctx, t)
		}
		if a.try || !errors.Is(err, ErrHeld) {
			return nil, err
		}
		a.contended = true
	}
}

// over is why no more attempts are made, if so. What ends ctx when the session is
// closed may be a moment behind.
func (a *attempt) over(ctx context.Context) error {
	if a.s.closing.Err() != nil {
		return ErrClosed
	}
	return ctx.Err()
}

// start sets the moment from which a grant counts: before anything is sent.
func (a *attempt) start() {
	now := time.Now()
	a.want.Start, a.slept = now, a.s.meter.at(now)
}

// acquire calls Acquire once. What it got may already be over.
func (a *attempt) acquire(ctx context.Context) (term, error) {
	if err := a.over(ctx); err != nil {
		return term{}, err // nothing more is sent
	}
	a.start()
	got, err := a.s.b.Acquire(ctx, a.want)
	if err != nil {
		refused := errors.Is(err, ErrHeld) || isInvalid(err)
		a.owed = a.queue || !refused
		return term{}, named("acquire", a.key, err)
	}
	a.owed = true
	if got.Start.IsZero() || got.Start.After(a.want.Start) {
		got.Start = a.want.Start
	}
	return a.term(got), nil
}

// wait waits for a chance, with a new owner. It returns a term that is good if it
// was granted one already; else the attempt goes on with an Acquire.
func (a *attempt) wait(ctx context.Context) (t term, good bool, err error) {
	if a.hasty > 2 {
		// A Waiter that never waits must not make us a busy loop.
		if err := a.rest(ctx); err != nil {
			return t, false, err
		}
	}
	a.want.Owner = a.s.owners.next()
	if a.s.waiter == nil {
		a.owed = false
		return t, false, a.rest(ctx)
	}
	a.start()
	a.owed, a.queue = true, true
	got, err := a.s.waiter.Wait(ctx, a.want)
	switch {
	case err == nil:
	case ctx.Err() != nil || isInvalid(err):
		a.contended = a.contended || got.Key != ""
		return t, false, err
	default:
		return t, false, a.rest(ctx)
	}
	if a.contended && (got.TTL > 0 || got.Key != "") {
		a.s.rush(a.key).on()
	}
	if a.hasty++; time.Since(a.want.Start) > 10*time.Millisecond {
		a.hasty = 0
	}
	if got.TTL <= 0 {
		a.want.Ticket = got.Ticket
		return t, false, nil
	}
	if got.Start.IsZero() {
		got.Start = a.want.Start // it may have been granted as early as this
	}
	t = a.term(got)
	return t, a.enough(t), nil
}

// rest sleeps as the policy says.
func (a *attempt) rest(ctx context.Context) error {
	if a.pace == nil {
		a.pace = a.s.o.Wait()
	}
	d := a.pace.NextBackOff()
	if d == backoff.Stop {
		return &backend.Error{Op: "acquire", Key: a.key, Err: ErrHeld}
	}
	if !sleep(ctx, max(d, time.Millisecond)) {
		return ctx.Err()
	}
	return nil
}

// failure makes the error that the caller of Lock sees.
func (a *attempt) failure(ctx context.Context, err error) error {
	why := ctx.Err()
	if why == nil && a.s.closing.Err() != nil {
		why, err = ErrClosed, ErrClosed // not the cancellation that we made of it
	}
	if why == nil {
		return named("lock", a.key, err)
	}
	all := []error{why, err}
	if errors.Is(err, why) {
		all = all[1:] // it says so itself, and why
	}
	if cause := context.Cause(ctx); why != ErrClosed && !errors.Is(why, cause) {
		all = append(all, cause)
	}
	if a.contended {
		all = append(all, ErrHeld)
	}
	return &backend.Error{Op: "lock", Key: a.key, Err: oneLine(all)}
}

// oneLine is errors.Join in one line.
func oneLine(errs []error) error {
	err := errs[0]
	for _, e := range errs[1:] {
		err = fmt.Errorf("%w: %w", err, e)
	}
	return err
}
