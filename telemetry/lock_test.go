package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

var errLink = errors.New("connection reset")

// Case 53: each metric fires, and contention is never a failure.
func TestLockAtOnceAndUnlock(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.lock()
		time.Sleep(3 * time.Second)
		r.wantMetrics(`acquire.duration{outcome=ok} 1: 0s`, `acquire.attempts{outcome=ok} 1: 1`, `waiting{} 0`, `held{} 1`)
		if err := r.m.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		r.wantSpans(
			"acquire attempt < acquire lock: 0s, ok, token 1",
			"acquire lock: 0s, ok, token 1, attempts 1",
			"release lock ~ acquire lock: 0s, ok, token 1")
		r.wantMetrics(`acquire.duration{outcome=ok} 1: 0s`, `acquire.attempts{outcome=ok} 1: 1`, `waiting{} 0`, `held{} 0`,
			`hold.duration{reason=unlocked} 1: 3s`, `release.duration{outcome=ok} 1: 0s`)
	})
}

func TestLockAfterAWait(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.elsewhere(2 * time.Second)
		go func() {
			time.Sleep(time.Second)
			r.wantMetrics(`waiting{} 1`)
		}()
		r.lock()
		r.wantSpans(
			"acquire attempt < acquire lock: 0s, held",
			"wait < acquire lock: 2s, ok, token 2",
			"acquire lock: 2s, ok, token 2, attempts 2")
		r.wantMetrics(`acquire.duration{outcome=ok} 1: 2s`, `acquire.attempts{outcome=ok} 1: 2`, `waiting{} 0`, `held{} 1`)
	})
}

// A wait that ends in a hint is the first part of an attempt.
func TestLockAfterAHint(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.use(r.tel.Middleware(&hinting{server: r.server}), nil)
		r.elsewhere(time.Second)
		r.lock()
		r.wantSpans(
			"acquire attempt < acquire lock: 0s, held",
			"wait < acquire lock: 1s, hint",
			"acquire attempt < acquire lock: 0s, ok, token 2",
			"acquire lock: 1s, ok, token 2, attempts 2")
		r.wantMetrics(`acquire.duration{outcome=ok} 1: 1s`, `acquire.attempts{outcome=ok} 1: 2`, `waiting{} 0`, `held{} 1`)
	})
}

// hinting is a server that grants nothing to who waits.
type hinting struct{ *server }

func (h *hinting) Wait(context.Context, backend.Lease) (backend.Lease, error) {
	time.Sleep(time.Second)
	return backend.Lease{}, nil
}

func TestTryLockRefused(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.elsewhere(time.Hour)
		if err := r.m.TryLock(t.Context()); !errors.Is(err, mutex.ErrHeld) {
			t.Error(err)
		}
		r.wantSpans(
			"acquire attempt < acquire lock: 0s, held",
			"acquire lock: 0s, held, attempts 1, try true")
		r.wantMetrics(`acquire.duration{outcome=held} 1: 0s`, `acquire.attempts{outcome=held} 1: 1`)
	})
}

func TestTryLockRefusedInTheSameSession(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.lock()
		if err := r.m.TryLock(t.Context()); !errors.Is(err, mutex.ErrHeld) {
			t.Error(err)
		}
		r.wantSpans(
			"acquire attempt < acquire lock: 0s, ok, token 1",
			"acquire lock: 0s, ok, token 1, attempts 1",
			"acquire lock: 0s, held, attempts 0, try true")
		r.wantMetrics(`acquire.duration{outcome=ok} 1: 0s`, `acquire.attempts{outcome=ok} 1: 1`, `waiting{} 0`, `held{} 1`,
			`acquire.duration{outcome=held} 1: 0s`, `acquire.attempts{outcome=held} 1: 0`)
	})
}

// How a Lock ends that somebody else's hold keeps from its end: as no failure.
func TestWaitsThatWereGivenUp(t *testing.T) {
	for outcome, end := range map[string]func(r *rig, ctx context.Context) context.Context{
		"deadline": func(r *rig, ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			r.t.Cleanup(cancel)
			return ctx
		},
		"canceled": func(r *rig, ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(5*time.Second, cancel)
			return ctx
		},
		"closed": func(r *rig, ctx context.Context) context.Context {
			time.AfterFunc(5*time.Second, func() { r.session.Close(context.Background()) })
			return ctx
		},
	} {
		t.Run(outcome, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				r.elsewhere(time.Hour)
				if err := r.m.Lock(end(r, t.Context())); !errors.Is(err, mutex.ErrHeld) {
					t.Error(err)
				}
				waited := outcome
				if outcome == "closed" {
					waited = "canceled" // by the session
				}
				r.wantSpans(
					"acquire attempt < acquire lock: 0s, held",
					"wait < acquire lock: 5s, "+waited,
					"acquire lock: 5s, "+outcome+", attempts 1",
					"release attempt < acquire lock: 0s, ok")
				r.wantMetrics(`acquire.duration{outcome=`+outcome+`} 1: 5s`, `acquire.attempts{outcome=`+outcome+`} 1: 1`, `waiting{} 0`)
			})
		})
	}
}

// silent never answers.
func silent(ctx context.Context, _ backend.Lease) (backend.Lease, error) {
	<-ctx.Done()
	return backend.Lease{}, ctx.Err()
}

func TestLocksThatFail(t *testing.T) {
	fails := func(err error) func(context.Context, backend.Lease) (backend.Lease, error) {
		return func(context.Context, backend.Lease) (backend.Lease, error) {
			time.Sleep(5 * time.Second)
			return backend.Lease{}, err
		}
	}
	for outcome, acquire := range map[string]func(context.Context, backend.Lease) (backend.Lease, error){
		"deadline":    silent,
		"unknown":     fails(errLink),
		"unreachable": fails(&backend.QuorumError{Nodes: []error{errLink, backend.ErrHeld}}),
		"invalid":     fails(&backend.InvalidError{Field: "TTL", Reason: "is too long"}),
	} {
		t.Run(outcome, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				r.server.acquire = acquire
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if outcome != "deadline" {
					ctx = t.Context()
				}
				if err := r.m.Lock(ctx); err == nil || errors.Is(err, mutex.ErrHeld) {
					t.Error(err)
				}
				spans := []string{
					"acquire attempt < acquire lock: 5s, !" + outcome,
					"acquire lock: 5s, !" + outcome + ", attempts 1",
					"release attempt < acquire lock: 0s, ok"}
				if outcome == "invalid" {
					spans = spans[:2] // nothing was sent
				}
				r.wantSpans(spans...)
				as := `{outcome=` + outcome + `,error.type=` + outcome + `}`
				r.wantMetrics(`acquire.duration`+as+` 1: 5s`, `acquire.attempts`+as+` 1: 1`, `waiting{} 0`)
			})
		})
	}
}

func TestLockOfADeadContext(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.m.Lock(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		r.wantSpans("acquire lock: 0s, !canceled, attempts 0")
		r.wantMetrics(`acquire.duration{outcome=canceled,error.type=canceled} 1: 0s`,
			`acquire.attempts{outcome=canceled,error.type=canceled} 1: 0`, `waiting{} 0`)
	})
}

func TestLockGrantedTooLate(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.server.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			got, err := r.server.Backend.Acquire(ctx, want)
			time.Sleep(ttl)
			return got, err
		}
		if err := r.m.Lock(t.Context()); err == nil {
			t.Error("locked")
		}
		r.wantSpans(
			"acquire attempt < acquire lock: 10s, ok, token 1",
			"acquire lock: 10s, !late, attempts 1",
			"release attempt < acquire lock: 0s, !lost, token 1")
		r.wantMetrics(`acquire.duration{outcome=late,error.type=late} 1: 10s`,
			`acquire.attempts{outcome=late,error.type=late} 1: 1`, `waiting{} 0`)
	})
}

// A session that closes while a grant is on its way has a hold for no time.
func TestLockGrantedToAClosedSession(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.server.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			got, err := r.server.Backend.Acquire(ctx, want)
			go r.session.Close(context.Background())
			time.Sleep(ms)
			return got, err
		}
		if err := r.m.Lock(t.Context()); !errors.Is(err, mutex.ErrClosed) {
			t.Error(err)
		}
		r.wantSpans(
			"acquire attempt < acquire lock: 1ms, ok, token 1",
			"acquire lock: 1ms, !closed, token 1, attempts 1",
			"release attempt < acquire lock: 0s, ok, token 1")
		r.wantMetrics(`acquire.duration{outcome=closed,error.type=closed} 1: 0.001s`, `acquire.attempts{outcome=closed,error.type=closed} 1: 1`,
			`waiting{} 0`, `held{} 0`, `hold.duration{reason=closed} 1: 0s`, `lost{reason=closed} 1`)
	})
}
