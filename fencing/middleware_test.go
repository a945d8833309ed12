package fencing_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
)

const term = time.Second

func want(owner string) backend.Lease {
	return backend.Lease{Key: "k", Owner: owner, TTL: term, Start: time.Now()}
}

// sourceFunc is a Source.
type sourceFunc func(ctx context.Context, key string, floor fencing.Token) (fencing.Token, error)

func (f sourceFunc) Next(ctx context.Context, key string, floor fencing.Token) (fencing.Token, error) {
	return f(ctx, key, floor)
}

// counting counts the draws from a Counter that begins after 10.
func counting(draws *int) fencing.Source {
	c := fencing.NewCounter(10)
	return sourceFunc(func(ctx context.Context, key string, floor fencing.Token) (fencing.Token, error) {
		*draws++
		return c.Next(ctx, key, floor)
	})
}

func acquire(t *testing.T, b backend.Backend, w backend.Lease) backend.Lease {
	t.Helper()
	got, err := b.Acquire(t.Context(), w)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return got
}

func release(t *testing.T, b backend.Backend, l backend.Lease) {
	t.Helper()
	if err := b.Release(t.Context(), l); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

func token(t *testing.T, what string, got backend.Lease, want fencing.Token) {
	t.Helper()
	if got.Token != want {
		t.Errorf("%s: token %d, want %d", what, got.Token, want)
	}
}

// undone checks that an attempt whose outcome is unknown leaves nothing once it
// was released.
func undone(t *testing.T, b backend.Backend, w backend.Lease) {
	t.Helper()
	release(t, b, w)
	if n := fencing.Remembered(b); n != 0 {
		t.Errorf("%d tokens are remembered, want none", n)
	}
	release(t, b, acquire(t, b, want("the next")))
}

func TestOneDrawServesTheWholeHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draws := 0
		b := fencing.Middleware(counting(&draws))(bareMemory())
		held := acquire(t, b, want("a"))
		for range 3 {
			token(t, "repeated", acquire(t, b, want("a")), held.Token)
			time.Sleep(term / 2)
			held.Start = time.Now()
			if err := b.Renew(t.Context(), held); err != nil {
				t.Fatalf("Renew: %v", err)
			}
		}
		if held.Token != 11 || draws != 1 {
			t.Errorf("token %d after %d draws, want 11 after one", held.Token, draws)
		}
		release(t, b, held)
		token(t, "the next hold", acquire(t, b, want("b")), 12)
	})
}

// A Source that counts by a clock is far ahead of the floor: the draw only puts
// it above the token that was asked for.
func TestARaiseIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fencing.Middleware(sourceFunc(func(_ context.Context, _ string, floor fencing.Token) (fencing.Token, error) {
			time.Sleep(time.Microsecond)
			return max(floor, fencing.Token(time.Now().UnixMicro())), nil
		}))(bareMemory())
		w := want("a")
		held := acquire(t, b, w)
		w.Token = held.Token + 1
		token(t, "raised", acquire(t, b, w), held.Token+1)
		token(t, "repeated", acquire(t, b, w), held.Token+1)
		w.Token = 0
		token(t, "asked for no floor", acquire(t, b, w), held.Token+1)
		release(t, b, held)
		if next := acquire(t, b, want("b")); next.Token <= held.Token+1 {
			t.Errorf("the next hold has token %d, want more than %d", next.Token, held.Token+1)
		}
	})
}

// The owner's lease ran out and another came and went. The key is the owner's
// anew then, and its token must be too, however the calls and timers fall.
func TestATokenEndsWithItsValidity(t *testing.T) {
	for _, c := range []struct {
		name        string
		pause, lag  time.Duration // before the call, and on its way
		timersStand bool
	}{{"asked after", 2 * term, 0, false}, {"granted after", term / 2, 3 * term, false}, {"before the timers", 2 * term, 0, true}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := bareMemory()
				network := &delayed{Backend: store}
				s := fencing.NewCounter(0)
				a, b := fencing.Middleware(s)(network), fencing.Middleware(s)(store)
				w := want("a")
				token(t, "the first", acquire(t, a, w), 1)
				if c.timersStand {
					fencing.StopTimers(a)
				}
				time.AfterFunc(term*3/2, func() { release(t, b, acquire(t, b, want("b"))) })
				time.Sleep(c.pause)
				network.delay = c.lag
				w.Start, w.TTL = time.Time{}, 10*term // zero: the moment of the call
				token(t, "granted anew after another's with 2", acquire(t, a, w), 3)
				network.delay = 0
				time.Sleep(5 * term)
				token(t, "repeated", acquire(t, a, w), 3)
			})
		})
	}
}

// delayed is a slow way to a backend.
type delayed struct {
	backend.Backend
	delay time.Duration
}

func (d *delayed) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	time.Sleep(d.delay)
	return d.Backend.Acquire(ctx, want)
}

func TestNothingIsRememberedOfAnEndedHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := bareMemory()
		b := fencing.Middleware(fencing.NewCounter(0))(store)
		remembered := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := fencing.Remembered(b); got != want {
				t.Errorf("%s: %d tokens are remembered, want %d", when, got, want)
			}
		}
		held := acquire(t, b, want("a"))
		remembered("held", 1)
		release(t, b, held)
		remembered("released", 0)

		held = acquire(t, b, want("b"))
		time.Sleep(term / 2)
		held.Start = time.Now()
		if err := b.Renew(t.Context(), held); err != nil {
			t.Fatalf("Renew: %v", err)
		}
		time.Sleep(time.Until(held.Until()) - time.Nanosecond)
		remembered("to the end of the renewed validity", 1)
		time.Sleep(time.Nanosecond)
		remembered("at its end", 0)

		time.Sleep(term)
		held = acquire(t, b, want("c"))
		release(t, store, held) // behind the layer's back
		if err := b.Renew(t.Context(), held); !errors.Is(err, backend.ErrLost) {
			t.Errorf("Renew: %v, want ErrLost", err)
		}
		remembered("lost", 0)

		held = acquire(t, b, want("d"))
		release(t, store, held)
		acquire(t, store, want("e"))
		if _, err := b.Acquire(t.Context(), held); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("Acquire: %v, want ErrHeld", err)
		}
		remembered("refused", 0)
	})
}

// A token that the Source did not give is asserted, once.
func TestRenewPutsTheSourceAboveAForeignToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draws := 0
		store := bareMemory()
		b := fencing.Middleware(counting(&draws))(store)
		held := acquire(t, store, want("a")) // before there was a layer
		held.Token = 1000
		for range 3 {
			if err := b.Renew(t.Context(), held); err != nil {
				t.Fatalf("Renew: %v", err)
			}
		}
		if draws != 1 {
			t.Errorf("%d draws, want 1", draws)
		}
		token(t, "the holder's repeated Acquire", acquire(t, b, want("a")), 1000)
		release(t, b, held)
		if next := acquire(t, b, want("b")); next.Token <= 1000 {
			t.Errorf("the next hold has token %d, want more than 1000", next.Token)
		}
		stranger := want("c")
		stranger.Token = 1 << 50
		if err := b.Renew(t.Context(), stranger); !errors.Is(err, backend.ErrLost) || draws != 2 {
			t.Errorf("Renew by a stranger: %v after %d draws, want ErrLost and nothing drawn", err, draws)
		}
	})
}

// What the backend has seen of its own tokens says nothing in the layer's.
func TestARefusalTellsNoTokenOfTheBackend(t *testing.T) {
	seen := backend.Lease{Key: "k", TTL: term, Token: 5}
	b := fencing.Middleware(fencing.NewCounter(0))(refusing{lease: seen})
	got, err := b.Acquire(t.Context(), want("a"))
	if seen.Token = 0; got != seen || !errors.Is(err, backend.ErrHeld) {
		t.Errorf("Acquire: %+v, %v; want %+v and ErrHeld", got, err, seen)
	}
}

type refusing struct {
	backend.Backend
	lease backend.Lease
}

func (r refusing) Acquire(context.Context, backend.Lease) (backend.Lease, error) {
	return r.lease, backend.ErrHeld
}

func TestMiddlewareOfANilSourcePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	fencing.Middleware(nil)
}
