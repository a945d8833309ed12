package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// recorder is a layer that writes down what it observes, and in which event the
// calls of the backend are made.
type recorder struct {
	backend.Backend

	mu     sync.Mutex
	events []string
	held   int
}

type inEvent struct{}

func (r *recorder) Unwrap() backend.Backend { return r.Backend }

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) Observe(ctx context.Context, e mutex.Event) (context.Context, func(error)) {
	link := ""
	if e.Link != nil {
		link = fmt.Sprint(" of ", e.Link.Value(inEvent{}))
	}
	switch e.Op {
	case mutex.OpAcquired, mutex.OpEnded:
		r.note("%s %d after %v, %s%s", e.Op, e.Token, e.Held, e.Why, link)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.held++; e.Op == mutex.OpEnded {
			r.held -= 2
		}
		return ctx, nil
	}
	r.note("begin %s %d%s", e.Op, e.Token, link)
	return context.WithValue(ctx, inEvent{}, e.Op), func(err error) { r.note("end %s: %v", e.Op, kind(err)) }
}

func kind(err error) string {
	for name, target := range map[string]error{"held": mutex.ErrHeld, "lost": mutex.ErrLost, "link": errLink} {
		if errors.Is(err, target) {
			return name
		}
	}
	return fmt.Sprint(err)
}

func (r *recorder) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	r.note("acquire in %v", ctx.Value(inEvent{}))
	return r.Backend.Acquire(ctx, want)
}

func (r *recorder) Renew(ctx context.Context, held backend.Lease) error {
	r.note("renew in %v", ctx.Value(inEvent{}))
	return r.Backend.Renew(ctx, held)
}

func (r *recorder) Release(ctx context.Context, held backend.Lease) error {
	r.note("release in %v", ctx.Value(inEvent{}))
	return r.Backend.Release(ctx, held)
}

// take returns the events so far and forgets them.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.events = nil }()
	return r.events
}

func wantEvents(t *testing.T, r *recorder, want ...string) {
	t.Helper()
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestObserverSeesALifeOfAHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := &recorder{Backend: memory.New(nil)}
		m := newMutex(t, r, nil)
		h := hold(t, m)
		wantEvents(t, r, "begin lock 0", "acquire in lock", "acquired 1 after 0s,  of lock", "end lock: <nil>")
		wantErr(t, m.TryLock(t.Context()), mutex.ErrHeld)
		wantEvents(t, r, "begin lock 0", "end lock: held")
		time.Sleep(4 * time.Second)
		wantEvents(t, r, "begin renew 1 of lock", "renew in renew", "end renew: <nil>")
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		wantEvents(t, r, "begin unlock 1 of lock", "release in unlock", "end unlock: <nil>",
			"ended 1 after 4s, unlocked of lock")
	})
}

func TestObserverSeesEachEndOnce(t *testing.T) {
	for want, end := range map[mutex.Reason]func(t *testing.T, n *network, m *mutex.Leased){
		mutex.Unlocked: func(t *testing.T, n *network, m *mutex.Leased) {
			n.change(func() { n.release = func(context.Context, backend.Lease) error { return errLink } })
		},
		mutex.Expired: func(t *testing.T, n *network, m *mutex.Leased) {
			n.change(func() { n.renew = func(context.Context, backend.Lease) error { return errLink } })
			time.Sleep(time.Minute)
		},
		mutex.MaxHold: func(t *testing.T, n *network, m *mutex.Leased) { time.Sleep(2 * time.Hour) },
		mutex.Taken: func(t *testing.T, n *network, m *mutex.Leased) {
			steal(t, n.inner, n.all("acquire")[0].lease.Owner)
		},
		mutex.Closed: func(t *testing.T, n *network, m *mutex.Leased) { m.Session().Close(t.Context()) },
	} {
		t.Run(string(want), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := newNetwork()
				r := &recorder{Backend: n}
				m := newMutex(t, r, nil)
				if err := m.Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				h := m.Current()
				end(t, n, m)
				for range 3 {
					m.Unlock(t.Context())
					h.Unlock(t.Context())
					h.Err()
				}
				synctest.Wait()
				var ends []string
				for _, e := range r.take() {
					if len(e) > 6 && e[:6] == "ended " {
						ends = append(ends, e)
					}
				}
				if len(ends) != 1 || r.held != 0 {
					t.Fatalf("ends are %q, %d still held; want one, none", ends, r.held)
				}
				if h.Token() != 1 || !slices.Contains([]string{
					fmt.Sprintf("ended 1 after %v, %s of lock", h.Until().Sub(n.all("acquire")[0].at), want)}, ends[0]) {
					t.Errorf("end is %q; want %q", ends[0], want)
				}
			})
		})
	}
}
