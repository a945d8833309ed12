package mutex_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/retry"
)

// newWaiting is a network with a Wait, whose inner backend another client holds.
func newWaiting(t *testing.T) (*waiting, *mutex.Hold) {
	w := &waiting{network: newNetwork()}
	return w, hold(t, newMutex(t, w.inner, nil))
}

// Law 13: progress without a single wake-up.
func TestWaitingGoesOnWithoutWakeUps(t *testing.T) {
	for name, wait := range map[string]func(context.Context, backend.Lease) (backend.Lease, error){
		"fails":                 func(context.Context, backend.Lease) (backend.Lease, error) { return backend.Lease{}, errLink },
		"returns for no reason": func(context.Context, backend.Lease) (backend.Lease, error) { return backend.Lease{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, other := newWaiting(t)
				w.wait = wait
				begin := time.Now()
				time.AfterFunc(10*time.Second, func() { other.Unlock(t.Context()) })
				hold(t, newMutex(t, w, nil))
				if d := time.Since(begin); d > 10*time.Second+250*ms {
					t.Errorf("held %v after it was free", d-10*time.Second)
				}
				if got := len(w.all("acquire")); got > 500 {
					t.Errorf("%d attempts in 10 s: a busy loop", got)
				}
			})
		})
	}
}

func TestHintIsFollowedByAnAcquireOfTheSameAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, other := newWaiting(t)
		w.wait = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			time.Sleep(20 * time.Second)
			if l.Ticket == "second" {
				other.Unlock(ctx)
			}
			return backend.Lease{Ticket: map[string]string{"": "first", "first": "second", "second": "third"}[l.Ticket]}, nil
		}
		h := hold(t, newMutex(t, w, nil))
		if want := time.Now().Add(validity); !h.Until().Equal(want) {
			t.Errorf("Until is %v; want %v: from before the Acquire", h.Until(), want)
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := w.all("")
		ops, tickets := "", ""
		for i, c := range all {
			ops += c.op[:1]
			tickets += c.lease.Ticket + " "
			if c.op != "release" && !c.lease.Start.Equal(c.at) {
				t.Errorf("%s at %v with Start %v", c.op, c.at, c.lease.Start)
			}
			if i == 0 {
				continue
			}
			if same := c.lease.Owner == all[i-1].lease.Owner; same == (c.op == "wait") {
				t.Errorf("call %d, %s: the same owner as before: %v", i, c.op, same)
			}
		}
		if ops != "awawawar" || tickets != "  first first second second third third " {
			t.Errorf("calls are %q with tickets %q", ops, tickets)
		}
	})
}

func TestGrantOfWaitIsHeldAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newWaiting(t)
		var pushed time.Time
		w.wait = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			time.Sleep(time.Minute)
			pushed = time.Now()
			time.Sleep(100 * ms)
			l.Start, l.TTL, l.Token = pushed, 2*time.Second, 99
			return l, nil
		}
		w.renew = func(context.Context, backend.Lease) error { return nil }
		h := hold(t, newMutex(t, w, nil))
		if want := pushed.Add(2*time.Second - 22*ms); !h.Until().Equal(want) || h.Token() != 99 {
			t.Errorf("Until is %v, token %v; want %v, 99", h.Until(), h.Token(), want)
		}
		time.Sleep(time.Second)
		if want := time.Now().Add(validity - time.Second); h.Until().Before(want) {
			t.Errorf("Until is %v; want the full term in the background", h.Until())
		}
		if got := len(w.all("acquire")); got != 1 {
			t.Errorf("%d Acquires; want none after the grant", got-1)
		}
	})
}

// Case 31.
func TestLateGrantOfWaitIsConfirmedOrGivenBack(t *testing.T) {
	for name, start := range map[string]func(l backend.Lease) time.Time{
		"too old":        func(l backend.Lease) time.Time { return time.Now().Add(-8 * time.Second) },
		"of unknown age": func(l backend.Lease) time.Time { return time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, other := newWaiting(t)
				w.wait = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
					time.Sleep(30 * time.Second)
					l.Start = start(l)
					return l, nil
				}
				m, begin := newMutex(t, w, nil), time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
				defer cancel()
				time.AfterFunc(50*time.Second, func() { other.Unlock(t.Context()) })
				err := m.Lock(ctx)
				wantErr(t, err, context.DeadlineExceeded, mutex.ErrHeld)
				synctest.Wait()
				free(t, w.inner)
				if got := len(w.all("release")); got != 1 {
					t.Errorf("%d releases; want one, of the place in line", got)
				}
				time.Sleep(time.Second)
				h := hold(t, m) // free now: no wait
				if want := time.Now().Add(validity); !h.Until().Equal(want) {
					t.Errorf("Until is %v; want %v (%v after begin)", h.Until(), want, time.Since(begin))
				}
			})
		})
	}
}

func TestWaiterThatGivesUpLeavesTheLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newWaiting(t)
		w.wait = func(ctx context.Context, l backend.Lease) (backend.Lease, error) { return l, silence(ctx, l) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, newMutex(t, w, nil).Lock(ctx), context.DeadlineExceeded, mutex.ErrHeld)
		synctest.Wait()
		got, waited := w.all("release"), w.all("wait")
		if len(got) != 1 || got[0].lease.Owner != waited[0].lease.Owner {
			t.Errorf("released %v; want what waited, %v", got, waited)
		}
	})
}

// The same while it rests between two attempts.
func TestWaiterThatGivesUpAfterARefusalLeavesTheLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, _ := newWaiting(t)
		w.wait = func(context.Context, backend.Lease) (backend.Lease, error) {
			return backend.Lease{Ticket: "seven"}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o := &mutex.Options{Wait: retry.Constant(time.Minute)}
		wantErr(t, newMutex(t, w, o).Lock(ctx), context.DeadlineExceeded, mutex.ErrHeld)
		synctest.Wait()
		got, asked := w.all("release"), w.all("acquire")
		if last := asked[len(asked)-1]; len(got) != 1 || got[0].lease.Owner != last.lease.Owner || got[0].lease.Ticket != "seven" {
			t.Errorf("released %+v; want the place in line, %+v", got, last)
		}
	})
}

func TestHandOverOfMemoryTakesNoTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New(nil)
		h := hold(t, newMutex(t, b, nil))
		begin := time.Now()
		time.AfterFunc(time.Minute, func() { h.Unlock(t.Context()) })
		next := hold(t, newMutex(t, b, nil))
		wantNow(t, begin, time.Minute)
		if next.Token() <= h.Token() {
			t.Errorf("token %v after %v", next.Token(), h.Token())
		}
		time.Sleep(time.Minute)
		if err := next.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestGrantOfWaitThatCannotBeRenewedIsConfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, other := newWaiting(t)
		w.wait = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			other.Unlock(ctx)
			l.Start, l.TTL = time.Now(), 2*time.Second
			short, err := w.inner.Acquire(ctx, l)
			return short, err
		}
		h := hold(t, newMutex(t, w, &mutex.Options{RenewEvery: -1}))
		if want := time.Now().Add(validity); !h.Until().Equal(want) {
			t.Errorf("Until is %v; want the full term, %v", h.Until(), want)
		}
	})
}
