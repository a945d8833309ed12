package mutex_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// ops are the calls of a waiting network since the last call of ops.
func (w *waiting) ops() (ops []string) {
	for _, c := range w.all("") {
		ops = append(ops, c.op)
	}
	w.change(func() { w.calls = nil })
	return ops
}

func unlock(t *testing.T, h *mutex.Hold) {
	t.Helper()
	if err := h.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// afterAWait is a session whose only Lock so far was refused first and then waited,
// and its network, which has written nothing down since.
func afterAWait(t *testing.T) (*waiting, *mutex.Session) {
	t.Helper()
	w, other := newWaiting(t)
	w.wait = w.inner.(*memory.Backend).Wait
	s, err := mutex.NewSession(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Second, func() { other.Unlock(t.Context()) })
	unlock(t, hold(t, s.Mutex("k")))
	if got := w.ops(); !slices.Equal(got, []string{"acquire", "wait", "release"}) {
		t.Fatalf("%v; want a refusal, a wait and a release", got)
	}
	return w, s
}

// Who stood in line for a lock stands there at once the next times, and now and
// then looks whether that is still worth it.
func TestAfterAWaitTheNextLocksBeginWithOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, s := afterAWait(t)
		cycle := func(first ...string) {
			t.Helper()
			unlock(t, hold(t, s.Mutex("k")))
			if got := w.ops(); !slices.Equal(got, append(first, "release")) {
				t.Fatalf("%v; want %v and a release", got, first)
			}
		}
		for range 15 {
			cycle("wait")
		}
		cycle("acquire")
		cycle("acquire")
	})
}

// TryLock stands in no line, and a hint is none: of a key that is free it would
// cost a call more.
func TestNoWaitComesFirstForTryLockAndHints(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, s := afterAWait(t)
		m := s.Mutex("k")
		if err := m.TryLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.ops(); !slices.Equal(got, []string{"acquire", "release"}) {
			t.Errorf("TryLock: %v", got)
		}

		other := hold(t, newMutex(t, w.inner, nil))
		w.wait = func(ctx context.Context, _ backend.Lease) (backend.Lease, error) {
			time.Sleep(time.Second)
			return backend.Lease{Ticket: "1"}, other.Unlock(ctx)
		}
		m = newMutex(t, w, nil)
		unlock(t, hold(t, m))
		w.ops()
		unlock(t, hold(t, m))
		if got := w.ops(); !slices.Equal(got, []string{"acquire", "release"}) {
			t.Errorf("after a hint: %v", got)
		}
	})
}

// A hint with the key is of one who stood in line.
func TestAfterAHintFromALineTheNextLocksBeginWithWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, other := newWaiting(t)
		w.wait = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			other.Unlock(ctx) // nothing happens the second time
			return backend.Lease{Key: l.Key, Ticket: "1"}, nil
		}
		m := newMutex(t, w, nil)
		unlock(t, hold(t, m))
		w.ops()
		unlock(t, hold(t, m))
		if got := w.ops(); !slices.Equal(got, []string{"wait", "acquire", "release"}) {
			t.Errorf("after a hint from a line: %v", got)
		}
	})
}

// A Lock whose only call was a Wait says that another held the lock, if that was
// seen, and leaves the line.
func TestLockThatOnlyWaitedSaysWhy(t *testing.T) {
	for name, seen := range map[string]bool{"seen": true, "not seen": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, s := afterAWait(t)
				hold(t, newMutex(t, w.inner, nil))
				if !seen {
					w.wait = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
						return backend.Lease{}, silence(ctx, l)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := s.Mutex("k").Lock(ctx)
				wantErr(t, err, context.DeadlineExceeded)
				if errors.Is(err, mutex.ErrHeld) != seen {
					t.Errorf("%v: held is %v, want %v", err, !seen, seen)
				}
				synctest.Wait()
				if got := w.ops(); !slices.Equal(got, []string{"wait", "release"}) {
					t.Errorf("%v; want a wait, and a release of the place", got)
				}
			})
		})
	}
}

// A context that has ended, and a session that was closed, send nothing.
func TestNothingIsSentForALockThatIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, s := afterAWait(t)
		m := s.Mutex("k")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, m.Lock(ctx), context.Canceled)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantErr(t, m.Lock(t.Context()), mutex.ErrClosed)
		if got := w.ops(); len(got) != 0 {
			t.Errorf("sent %v", got)
		}
	})
}
