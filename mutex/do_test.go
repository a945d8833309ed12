package mutex_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/mutex"
)

var errJob = errors.New("job failed")

func TestDoUnlocksHoweverItsFunctionEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New(nil)
		m := newMutex(t, b, nil)
		for name, f := range map[string]func(context.Context) error{
			"nil":   func(context.Context) error { return nil },
			"error": func(context.Context) error { return errJob },
			"panic": func(context.Context) error { panic(errJob) },
		} {
			var panicked error
			func() {
				defer func() { panicked, _ = recover().(error) }()
				err := m.Do(t.Context(), func(ctx context.Context) error {
					if _, ok := fencing.FromContext(ctx); !ok {
						t.Error("no token")
					}
					wantErr(t, m.TryLock(ctx), mutex.ErrHeld)
					return f(ctx)
				})
				if (name == "error") != errors.Is(err, errJob) || (name == "nil") != (err == nil) {
					t.Errorf("%s: Do = %v", name, err)
				}
			}()
			if (name == "panic") != (panicked == errJob) {
				t.Errorf("%s: panicked with %v", name, panicked)
			}
			free(t, b)
		}
	})
}

func TestDoTellsOfALossWhateverItsFunctionReturns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMutex(t, memory.New(nil), &mutex.Options{RenewEvery: -1})
		for name, f := range map[string]func(ctx context.Context) error{
			"nil":     func(context.Context) error { return nil },
			"error":   func(context.Context) error { return errJob },
			"ctx.Err": func(ctx context.Context) error { return ctx.Err() },
			"cause":   func(ctx context.Context) error { return context.Cause(ctx) },
		} {
			err := m.Do(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				return f(ctx)
			})
			wantErr(t, err, mutex.ErrLost)
			var lost *mutex.LostError
			if !errors.As(err, &lost) || lost.Reason != mutex.Expired {
				t.Errorf("%s: Do = %v", name, err)
			}
			if (name == "error") != errors.Is(err, errJob) || (name == "ctx.Err") != errors.Is(err, context.Canceled) {
				t.Errorf("%s: Do = %v", name, err)
			}
			if name == "cause" && err != error(lost) {
				t.Errorf("Do = %v; want the loss once", err)
			}
		}
	})
}

func TestDoDoesNotRunWithoutTheLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(context.Context, backend.Lease) (backend.Lease, error) { return backend.Lease{}, errLink }
		err := newMutex(t, n, nil).Do(t.Context(), func(context.Context) error {
			t.Error("runs without the lock")
			return nil
		})
		wantErr(t, err, errLink)
	})
}

// The context of Do ends with the caller's, and the lock is still unlocked.
func TestDoUnlocksAfterItsContextEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := newMutex(t, b, nil).Do(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err != context.DeadlineExceeded {
			t.Errorf("Do = %v; want %v", err, context.DeadlineExceeded)
		}
		free(t, b)
	})
}
