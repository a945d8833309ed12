package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

func lingering(d time.Duration) *mutex.Options { return &mutex.Options{Linger: d} }

func TestLingeringLeaseIsTakenWithoutACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, lingering(ms))
		var tokens []backend.Token
		for i := range 100 {
			if i%2 == 0 {
				time.Sleep(ms / 10)
			}
			h := hold(t, m)
			tokens = append(tokens, h.Token())
			if err := h.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := h.Unlock(t.Context()); err != nil {
				t.Fatalf("repeated Unlock: %v", err)
			}
		}
		wantRising(t, tokens)
		// One grant, and raises of 16, 64 and 256 tokens.
		if got := len(n.all("")); got != 4 {
			t.Errorf("%d calls while somebody came again each time; want 4", got)
		}
		time.Sleep(ms - 1)
		synctest.Wait()
		if got := m.Session().Planned(); got != 1 {
			t.Errorf("the agenda has %d holds; want the last one", got)
		}
		if got := len(n.all("release")); got != 0 {
			t.Error("released before its time")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := len(n.all("release")); got != 1 {
			t.Errorf("%d releases; want 1, after Linger", got)
		}
		if got := m.Session().Gates(); got != 0 {
			t.Errorf("%d gates are left", got)
		}
	})
}

func TestUnlockWithoutLingerReleases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		hold(t, newMutex(t, n, nil)).Unlock(t.Context())
		if got := len(n.all("release")); got != 1 {
			t.Errorf("%d releases when Unlock has returned; want 1", got)
		}
	})
}

// However often the session comes again, others wait for HandOver and one hold.
func TestLingeringIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New(nil)
		here, there := newMutex(t, b, lingering(5*ms)), newMutex(t, b, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				h := hold(t, here)
				time.Sleep(ms)
				h.Unlock(t.Context())
			}
		}()
		for range 20 {
			time.Sleep(3 * ms)
			begin := time.Now()
			hold(t, there).Unlock(t.Context())
			if waited := time.Since(begin); waited > 21*ms {
				t.Errorf("waited %v", waited)
			}
		}
		cancel()
		<-done
	})
}

// What lingers at the end of HandOver is released there.
func TestLingeringEndsWithHandOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, lingering(20*ms))
		h := hold(t, m)
		began := time.Now()
		time.Sleep(15 * ms)
		h.Unlock(t.Context())
		time.Sleep(20 * ms)
		synctest.Wait()
		if got := n.all("release"); len(got) != 1 || got[0].at.Sub(began) != 20*ms {
			t.Errorf("releases %+v; want one 20 ms after %v", got, began)
		}
	})
}

// The next hold is worth having: validity bounds the wait for it too.
func TestLeaseLingersOnlyWhileItLasts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		o := &mutex.Options{TTL: time.Second, RenewEvery: -1, HandOver: time.Minute, Linger: time.Minute}
		m := newMutex(t, n, o)
		began := time.Now()
		hold(t, m).Unlock(t.Context())
		time.Sleep(time.Second)
		synctest.Wait()
		released := n.all("release")
		valid := time.Second - backend.Drift(time.Second)
		if len(released) != 1 || released[0].at.Sub(began) != valid/2 {
			t.Errorf("releases %+v; want one when half of %v has passed", released, valid)
		}
	})
}

func TestLeaseThatWasAsleepIsNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, &mutex.Options{TTL: time.Second, HandOver: time.Minute, Linger: time.Minute})
		var slept time.Duration
		m.SetSlept(func() time.Duration { return slept })
		first := hold(t, m)
		first.Unlock(t.Context())
		slept = time.Minute // another may have had it since
		h, err := m.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Unlock(t.Context())
		if owner := n.all("acquire")[0].lease.Owner; h.Err() != nil || len(n.all("release")) != 1 || n.all("release")[0].lease.Owner != owner {
			t.Errorf("lost: %v; releases %+v; want one, of the first lease", h.Err(), n.all("release"))
		}
	})
}

func TestTryLockTakesALingeringLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		here, there := newMutex(t, n, lingering(ms)), newMutex(t, n, nil)
		if err := here.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := here.Current().Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := here.Unlock(t.Context()); !errors.Is(err, mutex.ErrNotLocked) {
			t.Errorf("Unlock of what only lingers: %v", err)
		}
		if err := there.TryLock(t.Context()); !errors.Is(err, mutex.ErrHeld) {
			t.Errorf("another session while it lingers: %v", err)
		}
		if err := here.TryLock(t.Context()); err != nil {
			t.Errorf("the session itself: %v", err)
		}
		here.Unlock(t.Context())
	})
}

// Close releases what lingers, at any moment, once, and waits for it.
func TestCloseReleasesWhatLingers(t *testing.T) {
	for _, when := range []time.Duration{0, ms - 1, ms, ms + 1, ms + ms/2, 2 * ms} {
		bubble(t, func(t *testing.T) {
			n := newNetwork()
			n.slowRelease(ms)
			m := newMutex(t, n, lingering(ms))
			hold(t, m).Unlock(t.Context())
			time.Sleep(when)
			if err := m.Session().Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := len(n.all("release")); got != 1 {
				t.Errorf("closed after %v: %d releases; want 1", when, got)
			}
			if err := newMutex(t, n.inner, nil).TryLock(t.Context()); err != nil {
				t.Errorf("closed after %v: %v", when, err)
			}
			if got := m.Session().Gates(); got != 0 {
				t.Errorf("%d gates are left", got)
			}
		})
	}
}

func TestCloseSaysWhatLingeredOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.release = func(context.Context, backend.Lease) error { return errLink }
		m := newMutex(t, n, lingering(ms))
		hold(t, m).Unlock(t.Context())
		if err := m.Session().Close(t.Context()); !errors.Is(err, errLink) {
			t.Errorf("Close: %v; want what its release returned", err)
		}
	})
}

// Who comes at the moment in which the lease is let go has it or the next one.
func TestLingeringEndsAsSomebodyComes(t *testing.T) {
	for range 50 {
		bubble(t, func(t *testing.T) {
			n := newNetwork()
			m := newMutex(t, n, lingering(ms))
			before := hold(t, m)
			before.Unlock(t.Context())
			time.Sleep(ms)
			after := hold(t, m)
			wantRising(t, []backend.Token{before.Token(), after.Token()})
			after.Unlock(t.Context())
			time.Sleep(time.Second)
			synctest.Wait()
			owners := map[string]int{}
			for _, c := range n.all("release") {
				owners[c.lease.Owner]++
			}
			for _, many := range owners {
				if many != 1 {
					t.Errorf("a lease was released %d times", many)
				}
			}
			if err := newMutex(t, n, nil).TryLock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLingerOptions(t *testing.T) {
	for name, o := range map[string]*mutex.Options{
		"negative":        {Linger: -1},
		"past HandOver":   {Linger: 21 * ms},
		"no HandOver":     {Linger: ms, HandOver: -1},
		"beside MinHold":  {Linger: ms, MinHold: ms},
		"past a HandOver": {Linger: 6 * ms, HandOver: 5 * ms},
	} {
		var bad *backend.InvalidError
		if _, err := mutex.NewSession(memory.New(nil), o); !errors.As(err, &bad) || bad.Field != "Linger" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A session that is being closed keeps nothing: neither does who unlocks then.
func TestNothingLingersInAClosedSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.slowRelease(5 * ms)
		s := newMutex(t, n, lingering(ms)).Session()
		var holds []*mutex.Hold
		for i := range 300 { // more than are released at a time
			holds = append(holds, hold(t, s.Mutex(fmt.Sprint("key", i))))
		}
		var wg sync.WaitGroup
		wg.Go(func() { s.Close(t.Context()) })
		synctest.Wait()
		for _, h := range holds {
			wg.Go(func() { h.Unlock(t.Context()) })
		}
		wg.Wait()
		if got := len(n.all("release")); got != len(holds) {
			t.Errorf("%d releases of %d holds", got, len(holds))
		}
	})
}
