package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
)

// silent is a Source that answers nobody before hear is closed, whatever their
// contexts say.
func silent(hear <-chan struct{}) fencing.Source {
	c := fencing.NewCounter(0)
	return sourceFunc(func(_ context.Context, key string, floor fencing.Token) (fencing.Token, error) {
		<-hear
		return c.Next(context.Background(), key, floor)
	})
}

// unclear checks an error of unknown outcome.
func unclear(t *testing.T, what string, err error) {
	t.Helper()
	var invalid *backend.InvalidError
	var e *backend.Error
	switch {
	case err == nil:
		t.Errorf("%s: nil, want an error", what)
	case errors.Is(err, backend.ErrHeld), errors.Is(err, backend.ErrLost), errors.As(err, &invalid):
		t.Errorf("%s: %v, want an outcome that is unknown", what, err)
	case !errors.As(err, &e) || e.Key != "k":
		t.Errorf("%s: %v, want the verb and the key in a backend.Error", what, err)
	}
}

func TestASilentSourceDoesNotOutliveTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hear := make(chan struct{})
		b := fencing.Middleware(silent(hear))(bareWaiter())
		w, _ := backend.As[backend.Waiter](b)
		for name, call := range map[string]func(context.Context, backend.Lease) (backend.Lease, error){"Acquire": b.Acquire, "Wait": w.Wait} {
			ctx, cancel := context.WithTimeout(t.Context(), term/4)
			began, asked := time.Now(), want(name)
			_, err := call(ctx, asked)
			cancel()
			if took := time.Since(began); took != term/4 || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v after %v; want the context's error after %v", name, err, took, term/4)
			}
			unclear(t, name, err)
			release(t, b, asked)
		}
		close(hear) // what was left behind draws tokens that nobody gets
		synctest.Wait()
		if n := fencing.Remembered(b); n != 0 {
			t.Errorf("%d tokens are remembered, want none", n)
		}
		token(t, "the next hold", acquire(t, b, want("next")), 3)
	})
}

// Nobody could use the token after the end of validity, so nobody waits longer;
// and it is not the caller's time that is up.
func TestADrawIsWaitedForWhileTheLeaseIsValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hear := make(chan struct{})
		b := fencing.Middleware(silent(hear))(bareMemory())
		w := want("a")
		_, err := b.Acquire(t.Context(), w)
		if !time.Now().Equal(w.Until()) || !strings.Contains(fmt.Sprint(err), "not valid any more") || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire: %v after %v; want the validity's end after %v", err, time.Since(w.Start), w.Until().Sub(w.Start))
		}
		unclear(t, "Acquire", err)
		close(hear)
		undone(t, b, w)
	})
}

// The last moment counts, not the last but one.
func TestATokenThatCameTooLateIsNotHandedOut(t *testing.T) {
	for _, c := range []struct {
		name  string
		spare time.Duration
		ok    bool
	}{{"in time", time.Nanosecond, true}, {"at the end of validity", 0, false}, {"after it", -time.Nanosecond, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := want("a")
				draw := w.Until().Sub(w.Start) - c.spare
				b := fencing.Middleware(sourceFunc(func(context.Context, string, fencing.Token) (fencing.Token, error) {
					time.Sleep(draw)
					return 7, nil
				}))(bareMemory())
				got, err := b.Acquire(t.Context(), w)
				switch {
				case c.ok && (err != nil || got.Token != 7):
					t.Errorf("Acquire: token %d, %v; want 7", got.Token, err)
				case !c.ok:
					unclear(t, "Acquire", err)
				}
				time.Sleep(term) // for what was left behind
			})
		})
	}
}

func TestARaiseThatFailsLeavesTheTokenAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, down := fencing.NewCounter(0), false
		b := fencing.Middleware(sourceFunc(func(ctx context.Context, key string, floor fencing.Token) (fencing.Token, error) {
			if down {
				return 0, errors.New("out of order")
			}
			return c.Next(ctx, key, floor)
		}))(bareMemory())
		w := want("a")
		held := acquire(t, b, w)
		down = true
		raised := w
		raised.Token = 1000
		_, err := b.Acquire(t.Context(), raised)
		unclear(t, "the raise", err)
		foreign := held
		foreign.Token = 2000
		unclear(t, "Renew with a token to be asserted", b.Renew(t.Context(), foreign))
		token(t, "repeated without the raise", acquire(t, b, w), held.Token)
		down = false
		token(t, "the raise again", acquire(t, b, raised), 1000)
		release(t, b, held)
	})
}

// What a Source says is no answer of the backend, nor the end of a context.
func TestASourcesErrorIsAnUnknownOutcome(t *testing.T) {
	broken := errors.New("out of order")
	answers := map[string]func(floor fencing.Token) (fencing.Token, error){
		"zero":          func(fencing.Token) (fencing.Token, error) { return 0, nil },
		"negative":      func(fencing.Token) (fencing.Token, error) { return -1, nil },
		"too large":     func(fencing.Token) (fencing.Token, error) { return backend.MaxToken + 1, nil },
		"below a floor": func(floor fencing.Token) (fencing.Token, error) { return floor - 1, nil },
	}
	causes := []error{broken, backend.ErrHeld, backend.ErrLost, &backend.InvalidError{Field: "floor"}, context.Canceled, context.DeadlineExceeded}
	for _, cause := range causes {
		answers[cause.Error()] = func(fencing.Token) (fencing.Token, error) { return 5, fmt.Errorf("draw: %w", cause) }
	}
	for name, answer := range answers {
		b := fencing.Middleware(sourceFunc(func(ctx context.Context, key string, floor fencing.Token) (fencing.Token, error) {
			if floor == 3 {
				return answer(floor)
			}
			return 100, nil
		}))(bareMemory())
		w := want("a")
		w.Token = 3
		_, err := b.Acquire(t.Context(), w)
		unclear(t, name, err)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v is the end of a context, and the caller's has not ended", name, err)
		}
		if name == broken.Error() && !errors.Is(err, broken) {
			t.Errorf("%v does not wrap its cause", err)
		}
		w.Token = 0
		undone(t, b, w)
	}
}
