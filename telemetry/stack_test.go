package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/retry"
	"github.com/distmutex/distmutex/telemetry"
)

// records is a log: its lines without the time.
type records struct{ bytes.Buffer }

func (r *records) logger(at slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(&r.Buffer, &slog.HandlerOptions{Level: at, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		a.Value = slog.StringValue(strings.ReplaceAll(a.Value.String(), "distmutex: ", ""))
		return a
	}}))
}

func (r *records) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	got := strings.Split(strings.TrimSuffix(r.String(), "\n"), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("log:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestLogOfALifeOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := newRig(t, nil), &records{}
		r.use(telemetry.Log(log.logger(slog.LevelDebug))(r.server), &mutex.Options{TTL: ttl, MaxHold: 11 * time.Second, RenewEvery: 5 * time.Second})
		r.elsewhere(2 * time.Second)
		r.lock()
		wantErr(t, r.m.TryLock(t.Context()), mutex.ErrHeld)
		time.Sleep(6 * time.Second)
		if err := r.m.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		log.want(t,
			`level=DEBUG msg="lock acquired" key=k duration=2s outcome=ok`,
			`level=DEBUG msg="lock not acquired" key=k duration=0s outcome=held error="lock \"k\": held by another"`,
			`level=DEBUG msg="lock renewed" key=k duration=0s token=2 outcome=ok`,
			`level=DEBUG msg="lock released" key=k duration=0s token=2 outcome=ok`,
			`level=DEBUG msg="hold ended" key=k duration=6s token=2 reason=unlocked`)
		r.ownerNotIn(log.String())
	})
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What is above Info is a loss, or may become one.
func TestLogOfLosses(t *testing.T) {
	for name, tc := range map[string]struct {
		options *mutex.Options
		run     func(t *testing.T, r *rig)
		want    []string
	}{
		"expired": {run: func(t *testing.T, r *rig) { time.Sleep(ttl) },
			want: []string{`level=ERROR msg="lock lost" key=k duration=9.897s token=1 reason=expired error="lost \"k\": expired"`}},
		"closed": {run: func(t *testing.T, r *rig) { r.session.Close(t.Context()) },
			want: []string{`level=WARN msg="lock lost" key=k duration=0s token=1 reason=closed error="lost \"k\": closed"`}},
		"held too long": {
			options: &mutex.Options{TTL: ttl, MaxHold: 11 * time.Second, RenewEvery: 5 * time.Second},
			run:     func(t *testing.T, r *rig) { time.Sleep(12 * time.Second) },
			want:    []string{`level=WARN msg="lock lost" key=k duration=10.999s token=1 reason=max_hold error="lost \"k\": max_hold"`}},
		"taken": {
			run: func(t *testing.T, r *rig) {
				r.server.steal(t)
				r.m.Unlock(t.Context())
			},
			want: []string{`level=ERROR msg="lock lost" key=k duration=0s token=1 reason=taken error="lost \"k\": taken: release \"k\": lease lost"`}},
		"not renewed": {
			options: &mutex.Options{TTL: ttl, MaxHold: time.Minute},
			run: func(t *testing.T, r *rig) {
				r.server.change(func() {
					r.server.renew = func(context.Context, backend.Lease) error {
						r.server.change(func() { r.server.renew = nil })
						return errLink
					}
				})
				time.Sleep(5 * time.Second)
				r.m.Unlock(t.Context())
			},
			want: []string{`level=WARN msg="lock not renewed" key=k duration=0s token=1 outcome=unknown error="renew \"k\": connection reset"`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, log := newRig(t, nil), &records{}
				r.use(telemetry.Log(log.logger(slog.LevelInfo))(r.server), tc.options)
				r.lock()
				tc.run(t, r)
				log.want(t, tc.want...)
				r.ownerNotIn(log.String())
			})
		})
	}
}

// backend.As finds only the outermost observer, which tells the one below. A
// layer between them that observes nothing is no obstacle.
func TestTwoObservers(t *testing.T) {
	paced := retry.Middleware(retry.Constant(ms))
	for name, layers := range map[string]func(tel *telemetry.Instrumentation, log *slog.Logger) []backend.Middleware{
		"log outermost": func(tel *telemetry.Instrumentation, log *slog.Logger) []backend.Middleware {
			return []backend.Middleware{telemetry.Log(log), paced, tel.Middleware}
		},
		"log innermost": func(tel *telemetry.Instrumentation, log *slog.Logger) []backend.Middleware {
			return []backend.Middleware{tel.Middleware, paced, telemetry.Log(log)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, log := newRig(t, nil), &records{}
				r.use(backend.Wrap(r.server, layers(r.tel, log.logger(slog.LevelDebug))...), nil)
				r.lock()
				time.Sleep(3 * time.Second)
				if err := r.m.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				r.wantSpans(acquired("release lock ~ acquire lock: 0s, ok, token 1")...)
				r.wantMetrics(counted(`held{} 0`, `hold.duration{reason=unlocked} 1: 3s`, `release.duration{outcome=ok} 1: 0s`)...)
				log.want(t,
					`level=DEBUG msg="lock acquired" key=k duration=0s outcome=ok`,
					`level=DEBUG msg="lock released" key=k duration=0s token=1 outcome=ok`,
					`level=DEBUG msg="hold ended" key=k duration=3s token=1 reason=unlocked`)
			})
		})
	}
}

// Two instrumentations, say of different providers, don't take each other's
// operations for their own.
func TestTwoInstrumentations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, inner := newRig(t, nil), newRig(t, nil)
		outer.use(backend.Wrap(outer.server, outer.tel.Middleware, inner.tel.Middleware), nil)
		outer.lock()
		if err := outer.m.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		metrics := counted(`held{} 0`, `hold.duration{reason=unlocked} 1: 0s`, `release.duration{outcome=ok} 1: 0s`)
		outer.wantMetrics(metrics...)
		inner.wantMetrics(metrics...)
		for _, r := range []*rig{outer, inner} {
			if got := r.ended(); len(r.spans.Ended()) != 3 || len(got["acquire lock"]) != 1 || len(got["acquire attempt"]) != 1 || len(got["release lock"]) != 1 {
				t.Errorf("got %v", got)
			}
		}
	})
}

// The layer above a retry sees a call once, the one below each repetition.
func TestAttemptsBelowARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.server.acquire = func(context.Context, backend.Lease) (backend.Lease, error) {
			r.server.change(func() { r.server.acquire = nil })
			return backend.Lease{}, errLink
		}
		r.use(backend.Wrap(r.server, retry.Middleware(retry.Constant(ms)), r.tel.Middleware), nil)
		r.lock()
		r.wantSpans(
			"acquire attempt < acquire lock: 0s, !unknown",
			"acquire attempt < acquire lock: 0s, ok, token 1",
			"acquire lock: 1ms, ok, token 1, attempts 2")
		r.noOwner()
	})
}

// withoutWaiter hides what a backend offers besides its verbs.
type withoutWaiter struct{ backend.Backend }

func TestLayersOfferWaitOnlyIfThereIsOne(t *testing.T) {
	tel, err := telemetry.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, layer := range map[string]backend.Middleware{"otel": tel.Middleware, "log": telemetry.Log(nil)} {
		b := memory.New(nil)
		if _, ok := backend.As[backend.Waiter](layer(b)); !ok {
			t.Errorf("%s: hides the Waiter", name)
		}
		if _, ok := backend.As[backend.Waiter](layer(withoutWaiter{b})); ok {
			t.Errorf("%s: made up a Waiter", name)
		}
		if _, ok := backend.As[mutex.Observer](layer(withoutWaiter{b})); !ok {
			t.Errorf("%s: is no Observer", name)
		}
		if got, ok := backend.As[*memory.Backend](layer(b)); !ok || got != b {
			t.Errorf("%s: can't be unwrapped", name)
		}
	}
}
