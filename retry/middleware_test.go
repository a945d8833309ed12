package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/retry"
)

var errLink = errors.New("link down")

// scripted answers the calls of each verb in order, the last answer for ever.
// The answer errHang waits for the end of ctx.
type scripted struct {
	answers []error
	calls   []backend.Lease
	at      []time.Time
}

var errHang = errors.New("hang")

func (s *scripted) call(ctx context.Context, l backend.Lease) error {
	s.calls, s.at = append(s.calls, l), append(s.at, time.Now())
	err := s.answers[min(len(s.calls), len(s.answers))-1]
	if err == errHang {
		<-ctx.Done()
		return &backend.Error{Op: "acquire", Key: l.Key, Err: ctx.Err()}
	}
	return err
}

func (s *scripted) Acquire(ctx context.Context, l backend.Lease) (backend.Lease, error) {
	if err := s.call(ctx, l); err != nil {
		return backend.Lease{}, err
	}
	l.Token, l.TTL = 42, l.TTL/2
	return l, nil
}
func (s *scripted) Renew(ctx context.Context, l backend.Lease) error   { return s.call(ctx, l) }
func (s *scripted) Release(ctx context.Context, l backend.Lease) error { return s.call(ctx, l) }

func lease() backend.Lease {
	return backend.Lease{Key: "k", Owner: "o", TTL: time.Second, Token: 7, Start: time.Now(), Ticket: "t"}
}

// verbs are the two that are repeated.
var verbs = map[string]func(context.Context, backend.Backend, backend.Lease) error{
	"acquire": func(ctx context.Context, b backend.Backend, l backend.Lease) error {
		_, err := b.Acquire(ctx, l)
		return err
	},
	"release": func(ctx context.Context, b backend.Backend, l backend.Lease) error { return b.Release(ctx, l) },
}

// bubble runs f for both verbs in bubbles of their own.
func bubble(t *testing.T, f func(*testing.T, func(context.Context, backend.Backend, backend.Lease) error)) {
	for name, verb := range verbs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, verb) })
		})
	}
}

func TestUnknownOutcomesAreRepeatedWithTheSameLease(t *testing.T) {
	bubble(t, func(t *testing.T, verb func(context.Context, backend.Backend, backend.Lease) error) {
		s := &scripted{answers: []error{errLink, errLink, nil}}
		l, begin := lease(), time.Now()
		if err := verb(t.Context(), retry.Middleware(retry.Exponential(10*ms, time.Second))(s), l); err != nil {
			t.Fatalf("got %v; want nil", err)
		}
		if want := []backend.Lease{l, l, l}; !slices.Equal(s.calls, want) {
			t.Errorf("calls are %v; want %v", s.calls, want)
		}
		if want := []time.Time{begin, begin.Add(10 * ms), begin.Add(30 * ms)}; !slices.Equal(s.at, want) {
			t.Errorf("made at %v; want %v", s.at, want)
		}
	})
}

func TestGrantIsReturnedAsItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := retry.Middleware(retry.Constant(ms))(&scripted{answers: []error{errLink, nil}})
		for _, start := range []time.Time{time.Now(), {}} {
			want := lease()
			want.Start = start
			got, err := b.Acquire(t.Context(), want)
			want.Token, want.TTL = 42, want.TTL/2
			if err != nil || got != want {
				t.Errorf("Acquire = %+v, %v; want %+v", got, err, want)
			}
		}
	})
}

// A zero Start is the moment of the call, and a repetition is no other call.
func TestRepeatsKeepTheMomentOfTheCall(t *testing.T) {
	bubble(t, func(t *testing.T, verb func(context.Context, backend.Backend, backend.Lease) error) {
		s := &scripted{answers: []error{errLink, errLink, nil}}
		l, begin := lease(), time.Now()
		l.Start = time.Time{}
		if err := verb(t.Context(), retry.Middleware(retry.Constant(10*ms))(s), l); err != nil {
			t.Fatal(err)
		}
		for i, c := range s.calls {
			if !c.Start.Equal(begin) {
				t.Errorf("call %d has Start %v; want %v", i, c.Start, begin)
			}
		}
	})
}

func TestDefiniteAnswersAreNotRepeated(t *testing.T) {
	for _, answer := range []error{nil, backend.ErrHeld, backend.ErrLost, &backend.InvalidError{Field: "Key", Reason: "is empty"}} {
		if answer != nil {
			answer = &backend.Error{Op: "acquire", Key: "k", Err: answer}
		}
		bubble(t, func(t *testing.T, verb func(context.Context, backend.Backend, backend.Lease) error) {
			s := &scripted{answers: []error{errLink, answer}}
			err := verb(t.Context(), retry.Middleware(retry.Constant(ms))(s), lease())
			if err != answer || len(s.calls) != 2 {
				t.Errorf("got %v in %d calls; want %v in 2", err, len(s.calls), answer)
			}
		})
	}
}

func TestRepeatsEndWithTheTerm(t *testing.T) {
	bubble(t, func(t *testing.T, verb func(context.Context, backend.Backend, backend.Lease) error) {
		s := &scripted{answers: []error{errLink}}
		l := lease()
		time.Sleep(250 * ms) // the attempt is that old already
		err := verb(t.Context(), retry.Middleware(retry.Constant(100*ms))(s), l)
		if err != errLink {
			t.Errorf("got %v; want the last attempt's error", err)
		}
		if since := time.Since(l.Start); since != 950*ms || len(s.calls) != 8 {
			t.Errorf("gave up at %v after %d calls; want 950ms and 8", since, len(s.calls))
		}
	})
}

// A holder learns of its loss after the term: its release is sent all the same.
func TestReleaseAfterTheTermIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answers: []error{errLink}}
		l := lease()
		time.Sleep(2 * time.Second)
		if err := retry.Middleware(retry.Constant(ms))(s).Release(t.Context(), l); err != errLink || len(s.calls) != 1 {
			t.Errorf("got %v in %d calls; want link down in 1", err, len(s.calls))
		}
	})
}

func TestRepeatsEndWhenThePolicyStops(t *testing.T) {
	for name, p := range map[string]retry.Policy{
		"limited": retry.Limit(retry.Constant(ms), 2),
		"v4's own": func() backoff.BackOff {
			return backoff.NewExponentialBackOff(backoff.WithInitialInterval(10*ms), backoff.WithMultiplier(1),
				backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(25*ms))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, verb func(context.Context, backend.Backend, backend.Lease) error) {
				s := &scripted{answers: []error{errLink}}
				b := retry.Middleware(p)(s)
				for range 2 { // each call has a back-off of its own
					s.calls = nil
					if err := verb(t.Context(), b, lease()); err != errLink || len(s.calls) != 3 {
						t.Errorf("got %v in %d calls; want link down in 3", err, len(s.calls))
					}
				}
			})
		})
	}
}

// Where ctx ends makes no difference: the error tells of both.
func TestEndOfContextKeepsTheCause(t *testing.T) {
	for name, answers := range map[string][]error{
		"while pausing": {errLink},
		"in a repeat":   {errLink, errHang},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, verb func(context.Context, backend.Backend, backend.Lease) error) {
				ctx, cancel := context.WithTimeout(t.Context(), 45*ms)
				defer cancel()
				begin := time.Now()
				err := verb(ctx, retry.Middleware(retry.Constant(10*ms))(&scripted{answers: answers}), lease())
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errLink) {
					t.Errorf("got %v; want both the deadline and the cause", err)
				}
				if took := time.Since(begin); took != 45*ms {
					t.Errorf("took %v; want 45ms", took)
				}
			})
		})
	}
}

func TestEndedContextIsNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, verb func(context.Context, backend.Backend, backend.Lease) error) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*ms, cancel)
		s := &scripted{answers: []error{errHang}}
		err := verb(ctx, retry.Middleware(retry.Constant(ms))(s), lease())
		if op, ok := err.(*backend.Error); !ok || op.Err != context.Canceled || len(s.calls) != 1 {
			t.Errorf("got %v in %d calls; want the backend's own error in 1", err, len(s.calls))
		}
	})
}

// A time-out below that is not the caller's is an unknown outcome like another.
func TestForeignDeadlineIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, verb func(context.Context, backend.Backend, backend.Lease) error) {
		s := &scripted{answers: []error{context.DeadlineExceeded, nil}}
		if err := verb(t.Context(), retry.Middleware(retry.Constant(ms))(s), lease()); err != nil || len(s.calls) != 2 {
			t.Errorf("got %v in %d calls; want nil in 2", err, len(s.calls))
		}
	})
}

func TestRenewPassesThrough(t *testing.T) {
	s := &scripted{answers: []error{errLink}}
	if err := retry.Middleware(retry.Constant(ms))(s).Renew(t.Context(), lease()); err != errLink || len(s.calls) != 1 {
		t.Errorf("got %v in %d calls; want link down in 1", err, len(s.calls))
	}
}

func TestBackendIsFoundThroughTheMiddleware(t *testing.T) {
	s := &scripted{}
	b := backend.Wrap(s, retry.Middleware(retry.Constant(ms)), retry.Middleware(retry.Constant(ms)))
	if got, ok := backend.As[*scripted](b); !ok || got != s {
		t.Errorf("As = %v, %v; want the backend below", got, ok)
	}
}
