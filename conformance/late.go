package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var lateChecks = []check{
	{"late/prompt", 8, "A call whose request does not arrive returns when its context ends, with an unknown outcome.", holding, latePrompt},
	{"late/undone", 10, "An Acquire that arrives after its Release was called leaves nothing.", holding, lateUndone},
	{"late/renew", 3, "A Renew that arrives when another has the key takes nothing from it.", holding | expiry, lateRenew},
	{"late/release", 3, "A Release that arrives when another has the key takes nothing from it.", holding | expiry, lateRelease},
	{"late/grant", 2, "A grant that was a long time on its way counts from before its request.", holding | expiry, lateGrant},
}

// briefly is how long a call is waited for that cannot be answered.
const briefly = 50 * time.Millisecond

func (t *trial) holdBack(b backend.Backend) (deliver func()) {
	return t.during("requests of a client are held back", t.h.Faults.Hold, b)
}

// unanswered makes each call once while nothing is answered.
func (t *trial) unanswered(b backend.Backend, end func()) (asked []backend.Lease) {
	t.Helper()
	calls := t.verbs(b)
	if w := t.waiter(b); w != nil {
		calls["Wait"] = func(ctx context.Context, l backend.Lease) error {
			got, err := w.Wait(ctx, l)
			if err == nil && got.TTL == 0 { // a hint, for no reason at all
				<-ctx.Done()
				return ctx.Err()
			}
			return err
		}
	}
	for verb, call := range calls {
		l := t.lease(long)
		asked = append(asked, l)
		t.note(l)
		ctx, cancel := context.WithTimeout(t.ctx, briefly)
		err := t.returns(verb, func() error { return call(ctx, l) }, end)
		cancel()
		t.answersNothing(verb+" that nobody answers", err, context.DeadlineExceeded)
	}
	return asked
}

func latePrompt(t *trial) {
	deliver := t.holdBack(t.b)
	asked := t.unanswered(t.b, deliver)
	deliver()
	for _, l := range asked {
		t.undo(t.b, l)
	}
	t.recovered()
	t.free()
}

func lateUndone(t *trial) {
	for range 3 {
		want := t.lease(long)
		t.note(want)
		deliver := t.holdBack(t.b)
		ctx, cancel := context.WithTimeout(t.ctx, briefly)
		err := t.returns("Acquire", func() error { _, err := t.b.Acquire(ctx, want); return err }, deliver)
		cancel()
		t.answersNothing("Acquire that nobody answers", err, context.DeadlineExceeded)
		ctx, cancel = context.WithTimeout(t.ctx, briefly)
		err = t.returns("Release", func() error { return t.b.Release(ctx, want) }, deliver)
		cancel()
		deliver()
		if err != nil {
			t.undo(t.b, want)
		}
		time.Sleep(briefly) // for what is still on its way
		t.recovered()
		t.free()
		next := t.acquire(t.peer, t.lease(long))
		time.Sleep(briefly)
		t.refused(t.b)
		t.renew(t.peer, next)
		t.release(t.peer, next)
	}
}

func lateRenew(t *trial) { t.overdue("Renew", t.b.Renew) }

func lateRelease(t *trial) { t.overdue("Release", t.b.Release) }

// overdue has a call of a holder arrive when its lease has run out and another
// has the key.
func (t *trial) overdue(verb string, call func(context.Context, backend.Lease) error) {
	t.timed(func(term time.Duration) string {
		held, ok := t.brief(t.b, t.lease(term))
		if !ok {
			return stalled
		}
		deliver := t.holdBack(t.b)
		defer deliver()
		ctx, cancel := context.WithTimeout(t.ctx, term/10)
		defer cancel()
		late := held
		late.Start = time.Now()
		err := t.returns(verb, func() error { return call(ctx, late) }, deliver)
		if !time.Now().Before(held.Until()) {
			return stalled
		}
		t.answersNothing(verb+" that nobody answers", err, context.DeadlineExceeded)
		sleepUntil(late.Start.Add(term + t.late + backend.Drift(term) + 10*time.Millisecond))
		next, ok := t.next(t.peer)
		if !ok {
			return stalled
		}
		deliver()
		time.Sleep(briefly)
		t.recovered()
		t.refused(t.b)
		t.renew(t.peer, next)
		t.release(t.peer, next)
		t.lost("Renew after another held", func() error { return t.b.Renew(t.ctx, held) })
		t.free()
		return judged
	})
}

func lateGrant(t *trial) {
	t.timed(func(term time.Duration) string {
		want := t.lease(term)
		t.note(want)
		deliver := t.holdBack(t.b)
		defer deliver()
		var got backend.Lease
		answer := make(chan error, 1)
		go func() {
			var err error
			got, err = t.b.Acquire(t.ctx, want)
			answer <- err
		}()
		time.Sleep(term / 2)
		deliver()
		err := <-answer
		switch {
		case err == nil && got.Start.After(want.Start):
			t.Fatalf("a grant that took %v counts from %v after its request, want from before", term/2, got.Start.Sub(want.Start))
		case errors.Is(err, backend.ErrHeld) || errors.Is(err, backend.ErrLost):
			t.Fatalf("Acquire of a free key that took %v: %v", term/2, err)
		case err != nil: // it refuses what comes so late
			t.undo(t.b, want)
			return judged
		}
		refusals := 0
		for t.refusedUntil(got.Until()) == judged {
			refusals++
			time.Sleep(term / 20)
		}
		if refusals == 0 {
			return stalled
		}
		return judged
	})
}
