package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var outageChecks = []check{
	{"pause/prompt", 12, "While the store stands still no call is answered, each returns with its context, and the holder keeps its lease.", pausing, pausePrompt},
	{"pause/term", 10, "A lease whose term ends while the store stands still ends, and the next token is larger.", pausing | expiry, pauseTerm},
	{"minority/verbs", 11, "With a minority sick, every verb answers as it does without.", sickness, minorityVerbs},
	{"minority/after", 11, "When a sick minority is well again, no lease that was released comes back, and tokens rise.", sickness, minorityAfter},
	{"crash/holds", 1, "A lease outlives a crash of the store: no other gets the key, and its holder keeps it.", crashing, crashHolds},
	{"crash/released", 10, "A lease that was released does not come back after a crash of the store.", crashing, crashReleased},
	{"crash/tokens", 5, "Tokens rise over a crash of the store.", crashing | fencing, crashTokens},
	{"forget/tokens", 5, "Tokens rise though the store has lost its data.", forgetting | fencing, forgetTokens},
	{"forget/loss", 3, "A holder whose lease the store has lost is told so, and does not get it back.", forgetting, forgetLoss},
	{"clock/tokens", 5, "Tokens rise though the store's clock is moved ahead and set back.", clock | fencing, clockTokens},
	{"clock/back", 1, "No lease ends early because the store's clock is set back.", clock | expiry, clockBack},
}

func pausePrompt(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	resume := t.during("the store stands still", t.h.Faults.Pause, t.b)
	asked := t.unanswered(t.b, resume)
	resume()
	kept := t.recovered(held)
	for _, l := range asked {
		t.undo(t.b, l)
	}
	if kept {
		t.holds(held)
		t.release(t.b, held)
	}
	t.free()
}

func pauseTerm(t *trial) {
	held := t.acquire(t.b, t.lease(t.short))
	resume := t.during("the store stands still", t.h.Faults.Pause, t.b)
	time.Sleep(t.short + backend.Drift(t.short))
	resume()
	t.recovered()
	time.Sleep(t.short + t.late) // where its clock stood still as well
	token, err := t.soonFree()
	if err != nil {
		t.Fatalf("a lease goes on though its term has passed twice: %v", err)
	}
	if !t.unfenced && token <= held.Token {
		t.Errorf("token %d after a lease with %d, want a larger one", token, held.Token)
	}
}

func minorityVerbs(t *trial) {
	heal := t.during("a minority is sick", t.h.Faults.Minority, t.b)
	defer heal()
	var last backend.Token
	for range 5 {
		for _, b := range []backend.Backend{t.b, t.peer} {
			t.promptly("Acquire, Renew and Release with a minority sick", func() {
				held := t.soonAcquired(b)
				if !t.unfenced && held.Token <= last {
					t.Fatalf("token %d, want more than the %d before", held.Token, last)
				}
				last = held.Token
				t.refused(t.peer)
				t.refused(t.b)
				t.renew(b, held)
				t.release(b, held)
			})
		}
	}
}

// soonAcquired takes a key that was just released. With as few nodes as are
// needed, what was refused before, or is released on the others only, may be in the
// way for a moment.
func (t *trial) soonAcquired(b backend.Backend) backend.Lease {
	t.Helper()
	for deadline := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) {
		got, err := t.tryAcquire(b, t.lease(long))
		if err == nil {
			return got
		}
		if !errors.Is(err, backend.ErrHeld) || time.Now().After(deadline) {
			t.Fatalf("Acquire of a key that nobody else holds: %v, want a grant", err)
		}
	}
}

func minorityAfter(t *trial) {
	before := t.acquire(t.b, t.lease(long))
	heal := t.during("a minority is sick", t.h.Faults.Minority, t.b)
	t.release(t.b, before)
	during := t.soonAcquired(t.peer)
	t.release(t.peer, during)
	heal()
	t.recovered()
	token, err := t.soonFree()
	if err != nil {
		t.Fatalf("the key should be free: %v", err)
	}
	if !t.unfenced && (during.Token <= before.Token || token <= during.Token) {
		t.Errorf("tokens %d, %d with a minority sick, and %d after: want them to rise", before.Token, during.Token, token)
	}
}

func (t *trial) crash() (restart func()) {
	return t.during("the store crashes", t.h.Faults.Crash, t.b)
}

func crashHolds(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	restart := t.crash()
	other := t.lease(long)
	t.note(other)
	ctx, cancel := context.WithTimeout(t.ctx, briefly)
	err := t.returns("Acquire", func() error { _, err := t.peer.Acquire(ctx, other); return err }, restart)
	cancel()
	if err == nil {
		t.Fatalf("during the crash another was granted the key")
	}
	restart()
	if !errors.Is(err, backend.ErrHeld) {
		t.undo(t.peer, other)
	}
	if t.recovered(held) {
		t.holds(held)
		t.release(t.b, held)
	}
	t.free()
}

func crashReleased(t *trial) {
	t.release(t.b, t.acquire(t.b, t.lease(long)))
	t.crash()()
	t.recovered()
	t.free()
}

func crashTokens(t *trial) {
	last := t.soonRising(t.b, 0)
	for range 2 {
		t.crash()()
		t.recovered()
		last = t.soonRising(t.b, last)
		last = t.soonRising(t.peer, last)
	}
}

// soonRising is rising during and after an outage.
func (t *trial) soonRising(b backend.Backend, last backend.Token) backend.Token {
	t.Helper()
	got := t.soonAcquired(b)
	if got.Token <= last {
		t.Fatalf("token %d, want more than the %d before", got.Token, last)
	}
	t.release(b, got)
	return got.Token
}

func (t *trial) forget() {
	t.fault("the store loses its data")
	t.h.Faults.Forget(t.TB, raw(t.b))
	t.recovered()
}

func forgetTokens(t *trial) {
	last := t.soonRising(t.b, 0)
	for range 2 {
		t.forget()
		last = t.soonRising(t.b, last)
		last = t.soonRising(t.peer, last)
	}
}

func forgetLoss(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	t.forget()
	next, err := t.tryAcquire(t.peer, t.lease(long))
	switch {
	case errors.Is(err, backend.ErrHeld): // it has not lost this one
		t.renew(t.b, held)
		t.release(t.b, held)
	case err != nil:
		t.Fatalf("Acquire after the store has lost its data: %v, want a grant or ErrHeld", err)
	default:
		t.lost("Renew of a lease that got lost, while another holds", func() error { return t.b.Renew(t.ctx, held) })
		t.release(t.peer, next)
		t.lost("Renew of a lease that got lost", func() error { return t.b.Renew(t.ctx, held) })
	}
	t.free()
}

func (t *trial) moveClock(by time.Duration) {
	t.fault("the store's clock moves by " + by.String())
	t.h.Faults.MoveClock(t.TB, raw(t.b), by)
}

func clockTokens(t *trial) {
	last := t.soonRising(t.b, 0)
	for _, by := range []time.Duration{time.Hour, -time.Hour, -time.Hour, time.Hour} {
		t.moveClock(by)
		t.recovered()
		last = t.soonRising(t.b, last)
		last = t.soonRising(t.peer, last)
	}
}

func clockBack(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	t.moveClock(-time.Hour)
	defer t.moveClock(time.Hour)
	if t.recovered(held) {
		t.holds(held)
		t.release(t.b, held)
	}
	t.free()
}
