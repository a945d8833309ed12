package telemetry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// renewing makes a hold renew at about 3 s, 6 s and so on.
var renewing = &mutex.Options{TTL: ttl, MaxHold: time.Minute}

// acquired is what the start of a hold leaves in spans and metrics.
func acquired(spans ...string) []string {
	return append(spans,
		"acquire attempt < acquire lock: 0s, ok, token 1",
		"acquire lock: 0s, ok, token 1, attempts 1")
}

func counted(metrics ...string) []string {
	return append(metrics, `acquire.duration{outcome=ok} 1: 0s`, `acquire.attempts{outcome=ok} 1: 1`, `waiting{} 0`)
}

// answers makes renewals take 5 ms and end with err.
func (s *server) answers(err error) {
	s.change(func() {
		s.renew = func(ctx context.Context, held backend.Lease) error {
			time.Sleep(5 * ms)
			if err != nil {
				return err
			}
			return s.Backend.Renew(ctx, held)
		}
	})
}

// A renewal is a trace of its own: not even that of the context of Lock.
func TestRenewal(t *testing.T) {
	bubble(t, renewing, func(t *testing.T, r *rig) {
		r.server.answers(nil)
		ctx, parent := r.tracer().Start(t.Context(), "caller")
		if err := r.m.Lock(ctx); err != nil {
			t.Fatal(err)
		}
		parent.End()
		time.Sleep(4 * time.Second)
		all := r.ended()
		locked, renewed := all["acquire lock"][0], all["renew lock"][0]
		if renewed.Parent().IsValid() || renewed.SpanContext().TraceID() == locked.SpanContext().TraceID() {
			t.Errorf("the renewal is part of the trace of the Lock; parent %v", renewed.Parent())
		}
		if locked.Parent().SpanID() != parent.SpanContext().SpanID() {
			t.Error("the Lock is not the caller's")
		}
		if got := r.describe(renewed, r.names()); got != "renew lock ~ acquire lock: 5ms, ok, token 1" {
			t.Errorf("got %s", got)
		}
		r.wantMetrics(counted(`held{} 1`, `renew.duration{outcome=ok} 1: 0.005s`)...)
	})
}

// Those that fail are tried again, until the hold expires.
func TestRenewalsThatFail(t *testing.T) {
	bubble(t, renewing, func(t *testing.T, r *rig) {
		r.server.answers(errLink)
		r.lock()
		time.Sleep(3500 * ms) // the first is due between 2.9 and 3.3 s
		all := r.ended()["renew lock"]
		if len(all) == 0 {
			t.Fatal("no renewal")
		}
		for _, s := range all {
			if got := r.describe(s, r.names()); got != "renew lock ~ acquire lock: 5ms, !unknown, token 1" {
				t.Errorf("got %s", got)
			}
		}
		r.server.answers(nil)
		time.Sleep(time.Second)
		last := r.ended()["renew lock"]
		if got := r.describe(last[len(last)-1], r.names()); got != "renew lock ~ acquire lock: 5ms, ok, token 1" {
			t.Errorf("got %s", got)
		}
		if r.m.Current().Err() != nil {
			t.Error(r.m.Current().Err())
		}
	})
}

// One that gets no answer is ended with the hold's last half: unknown, for its
// deadline is nobody's but ours.
func TestRenewalWithoutAnswer(t *testing.T) {
	bubble(t, renewing, func(t *testing.T, r *rig) {
		r.server.renew = func(ctx context.Context, l backend.Lease) error {
			_, err := silent(ctx, l)
			return err
		}
		r.lock()
		time.Sleep(8 * time.Second)
		r.session.Close(t.Context())
		all := r.ended()["renew lock"]
		if len(all) == 0 {
			t.Error("no renewal")
		}
		for _, s := range all {
			if got := r.describe(s, r.names()); !strings.HasSuffix(got, ", !unknown, token 1") || s.Status().Description == "" {
				t.Errorf("got %s: %v", got, s.Status())
			}
		}
		for _, m := range r.metrics() {
			if strings.HasPrefix(m, "renew") && !strings.Contains(m, "{outcome=unknown,error.type=unknown}") {
				t.Errorf("got %s", m)
			}
		}
	})
}

// How a hold ends that is not unlocked; each once, at the moment it was lost.
func TestLosses(t *testing.T) {
	for reason, tc := range map[mutex.Reason]struct {
		options *mutex.Options
		end     func(t *testing.T, r *rig)
		spans   []string
		metrics []string
	}{
		mutex.Expired: {
			end: func(t *testing.T, r *rig) { time.Sleep(ttl) },
			// Unlock releases in the background what may still be there.
			spans:   []string{"release attempt: 0s, !lost, token 1"},
			metrics: []string{`hold.duration{reason=expired} 1: 9.897s`},
		},
		mutex.MaxHold: {
			options: &mutex.Options{TTL: ttl, MaxHold: 11 * time.Second, RenewEvery: 5 * time.Second},
			end:     func(t *testing.T, r *rig) { time.Sleep(12 * time.Second) },
			spans:   []string{"renew lock ~ acquire lock: 0s, ok, token 1", "release attempt: 0s, ok, token 1"},
			metrics: []string{`hold.duration{reason=max_hold} 1: 10.999s`, `renew.duration{outcome=ok} 1: 0s`},
		},
		mutex.Taken: {
			options: &mutex.Options{TTL: ttl, RenewEvery: 3 * time.Second},
			end: func(t *testing.T, r *rig) {
				time.Sleep(time.Second)
				r.server.steal(t)
				time.Sleep(5 * time.Second)
			},
		},
		mutex.Closed: {
			end: func(t *testing.T, r *rig) {
				time.Sleep(3 * time.Second)
				if err := r.session.Close(t.Context()); err != nil {
					t.Error(err)
				}
			},
			spans:   []string{"release lock ~ acquire lock: 0s, ok, token 1"},
			metrics: []string{`hold.duration{reason=closed} 1: 3s`, `release.duration{outcome=ok} 1: 0s`},
		},
	} {
		t.Run(string(reason), func(t *testing.T) {
			bubble(t, tc.options, func(t *testing.T, r *rig) {
				r.lock()
				h := r.m.Current()
				tc.end(t, r)
				if err := h.Unlock(t.Context()); !errors.Is(err, mutex.ErrLost) {
					t.Errorf("unlock: %v", err)
				}
				if reason == mutex.Taken {
					r.wantTaken()
					return
				}
				r.wantSpans(acquired(tc.spans...)...)
				r.wantMetrics(counted(append(tc.metrics, `held{} 0`, `lost{reason=`+string(reason)+`} 1`)...)...)
			})
		})
	}
}

// wantTaken looks at a loss that a renewal, due at a random time, found out.
func (r *rig) wantTaken() {
	r.t.Helper()
	renewed := r.ended()["renew lock"]
	if len(renewed) != 1 {
		r.t.Fatalf("%d renewals, want 1", len(renewed))
	}
	took := renewed[0].EndTime().Sub(renewed[0].StartTime())
	held := renewed[0].EndTime().Sub(r.ended()["acquire lock"][0].EndTime())
	r.wantSpans(acquired("renew lock ~ acquire lock: " + took.String() + ", !lost, token 1")...)
	r.wantMetrics(counted(`held{} 0`, `lost{reason=taken} 1`,
		histogram(`hold.duration{reason=taken}`, held), histogram(`renew.duration{outcome=lost,error.type=lost}`, took))...)
}

func TestUnlockOfATakenLock(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.lock()
		time.Sleep(time.Second)
		r.server.steal(t)
		if err := r.m.Unlock(t.Context()); !errors.Is(err, mutex.ErrLost) {
			t.Error(err)
		}
		r.wantSpans(acquired("release lock ~ acquire lock: 0s, !lost, token 1")...)
		r.wantMetrics(counted(`held{} 0`, `hold.duration{reason=taken} 1: 1s`, `lost{reason=taken} 1`,
			`release.duration{outcome=lost,error.type=lost} 1: 0s`)...)
	})
}

// An Unlock whose outcome is unknown ends the hold, and can be repeated: that is
// another release of no hold.
func TestUnlockOfUnknownOutcome(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.lock()
		time.Sleep(time.Second)
		r.server.change(func() {
			r.server.release = func(context.Context, backend.Lease) error {
				time.Sleep(5 * ms)
				return errLink
			}
		})
		if err := r.m.Unlock(t.Context()); !errors.Is(err, errLink) {
			t.Error(err)
		}
		r.server.change(func() { r.server.release = nil })
		if err := r.m.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		r.wantSpans(acquired(
			"release lock ~ acquire lock: 5ms, !unknown, token 1",
			"release lock ~ acquire lock: 0s, ok, token 1")...)
		r.wantMetrics(counted(`held{} 0`, `hold.duration{reason=unlocked} 1: 1s`,
			`release.duration{outcome=unknown,error.type=unknown} 1: 0.005s`, `release.duration{outcome=ok} 1: 0s`)...)
	})
}

// A release in the trace of who asked for it.
func TestUnlockIsTheCallers(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.lock()
		ctx, parent := r.tracer().Start(t.Context(), "caller")
		if err := r.m.Unlock(ctx); err != nil {
			t.Error(err)
		}
		parent.End()
		if got := r.describe(r.ended()["release lock"][0], r.names()); got != "release lock < caller ~ acquire lock: 0s, ok, token 1" {
			t.Errorf("got %s", got)
		}
	})
}
