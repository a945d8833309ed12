package mutex_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// queue has n goroutines of m's session wait in order and take turns of a given
// length. It returns their tokens in the order in which they had the lock.
func queue(t *testing.T, m *mutex.Leased, n int, length time.Duration) []backend.Token {
	t.Helper()
	var tokens []backend.Token
	var wg sync.WaitGroup
	var ready sync.WaitGroup
	ready.Add(1)
	for i := range n {
		wg.Go(func() {
			h, err := m.Hold(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if i == 0 {
				ready.Wait() // until all others stand in line
			}
			tokens = append(tokens, h.Token())
			time.Sleep(length)
			if err := h.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
	}
	ready.Done()
	wg.Wait()
	return tokens
}

func wantRising(t *testing.T, tokens []backend.Token) {
	t.Helper()
	for i, token := range tokens {
		if i > 0 && token <= tokens[i-1] {
			t.Errorf("token %d after %d", token, tokens[i-1])
		}
	}
}

func TestGoroutinesPassALeaseAmongThemselves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, nil)
		tokens := queue(t, m, 100, 0)
		wantRising(t, tokens)
		if len(tokens) != 100 {
			t.Errorf("%d had the lock; want 100", len(tokens))
		}
		// One grant, and raises of 16, 64 and 256 tokens.
		if got := len(n.all("acquire")); got != 4 {
			t.Errorf("%d calls of Acquire; want 4", got)
		}
		if got := n.all("release"); len(got) != 1 {
			t.Errorf("%d calls of Release; want 1", len(got))
		}
		next, err := m.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer next.Unlock(t.Context())
		wantRising(t, append(tokens, next.Token()))
	})
}

func TestUnfencedLeaseIsPassedWithoutACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			got, err := n.inner.Acquire(ctx, want)
			got.Token = 0
			return got, err
		}
		queue(t, newMutex(t, n, nil), 10, 0)
		if got := len(n.all("")); got != 2 {
			t.Errorf("%d calls; want an Acquire and a Release", got)
		}
	})
}

// What others wait for is HandOver and one turn, however many goroutines wait
// here.
func TestPassingOnIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New(nil)
		here, there := newMutex(t, b, nil), newMutex(t, b, nil)
		var wg sync.WaitGroup
		wg.Go(func() { queue(t, here, 200, ms) })
		time.Sleep(ms / 2)
		for range 5 {
			begin := time.Now()
			hold(t, there).Unlock(t.Context())
			if waited := time.Since(begin); waited > 22*ms {
				t.Errorf("waited %v", waited)
			}
			time.Sleep(5 * ms)
		}
		wg.Wait()
	})
}

// Where nobody stands in line, others have a moment to get the key.
func TestSessionKeepsOffTheKeyAfterItsTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		queue(t, newMutex(t, n, nil), 50, ms)
		released, acquired := n.all("release"), n.all("acquire")
		for _, r := range released[:len(released)-1] {
			for _, a := range acquired {
				if a.lease.Owner != r.lease.Owner && !a.at.Before(r.at) && a.at.Sub(r.at) < ms {
					t.Errorf("acquired %v after a release", a.at.Sub(r.at))
				}
			}
		}
		if len(released) != 3 {
			t.Errorf("%d releases; want one each 20 ms", len(released))
		}
	})
}

func TestHandOverCanBeTurnedOff(t *testing.T) {
	for name, o := range map[string]*mutex.Options{
		"negative": {HandOver: -1},
		"MinHold":  {MinHold: ms},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := newNetwork()
				queue(t, newMutex(t, n, o), 5, 2*ms)
				if got := len(n.all("release")); got != 5 {
					t.Errorf("%d releases; want one for each turn", got)
				}
			})
		})
	}
}

// The one to whom it was left went away in the same moment.
// A renewal asserts all tokens that were given or may be.
func TestRenewalOfAPassedLeaseAssertsItsLastToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		m := newMutex(t, n, nil)
		first := hold(t, m)
		got := make(chan *mutex.Hold)
		go func() {
			h, _ := m.Hold(t.Context())
			got <- h
		}()
		synctest.Wait()
		if err := first.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := <-got
		if second.Token() != first.Token()+1 {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		time.Sleep(validity)
		if err := second.Err(); err != nil {
			t.Fatalf("not renewed: %v", err)
		}
		for _, c := range n.all("renew") {
			if c.lease.Token < first.Token()+16 {
				t.Errorf("a renewal asserts %d; want %d", c.lease.Token, first.Token()+16)
			}
		}
		if err := second.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// The first turn's raise finds the key lost, and another has had it: it is
// granted anew then, and the tokens below are not this lease's.
func TestMaxHoldCountsForEachTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMutex(t, newNetwork(), &mutex.Options{TTL: time.Second, MaxHold: time.Second, HandOver: time.Minute})
		tokens := queue(t, m, 5, 500*ms)
		wantRising(t, tokens)
		h := hold(t, m)
		time.Sleep(2 * time.Second)
		wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
	})
}

// A session that closes leaves no lease at its gates.
// TryLock overtakes nobody who waits.
func TestTryLockDoesNotTakeWhatIsPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMutex(t, newNetwork(), nil)
		h := hold(t, m)
		done := make(chan error)
		go func() { done <- m.Lock(t.Context()) }()
		synctest.Wait()
		if err := h.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantErr(t, m.TryLock(t.Context()), mutex.ErrHeld)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := m.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
