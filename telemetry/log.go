package telemetry

import (
	"context"
	"log/slog"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// Log is a layer that tells l what locks are waited for, held and lost; nil:
// slog.Default() at the time. Like Middleware's, it is a mutex.Observer and
// passes on what it is told.
//
// A lock that expired or was taken is an error. One that was held for too long,
// or that Close took away, is a warning, and so is a renewal that failed and
// will be tried again. All else is for debugging: its caller has the error. Each
// record has the key, the token where there is one, and never the owner.
func Log(l *slog.Logger) backend.Middleware {
	return func(b backend.Backend) backend.Backend {
		lg := &logger{Backend: b, l: l}
		lg.next, _ = backend.As[mutex.Observer](b)
		return lg
	}
}

// LogNode is for quorum.Options.OnNode: a warning when a node is set aside, and
// a line when it is in use again. A nil l is slog.Default() at the time.
func LogNode(l *slog.Logger) func(backend.NodeState) {
	return func(s backend.NodeState) {
		to := or(l)
		switch {
		case !s.Aside:
			to.Info("distmutex: node in use again", "node", s.Name)
		case s.Err == nil:
			to.Warn("distmutex: node set aside", "node", s.Name)
		default:
			to.Warn("distmutex: node set aside", "node", s.Name, "error", s.Err)
		}
	}
}

func or(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.Default()
	}
	return l
}

// logger is a layer that leaves all calls as they are.
type logger struct {
	backend.Backend
	next mutex.Observer
	l    *slog.Logger
}

func (lg *logger) Unwrap() backend.Backend { return lg.Backend }

// Observe makes a logger a mutex.Observer.
func (lg *logger) Observe(ctx context.Context, e mutex.Event) (context.Context, func(error)) {
	m, known := messages[e.Op]
	if !known {
		return pass(lg.next, ctx, e, nil)
	}
	begun := time.Now()
	return pass(lg.next, ctx, e, func(err error) { lg.log(ctx, m, e, time.Since(begun), err) })
}

// message is what is said of an event when it has ended. OpAcquired has none,
// since its OpLock says the same.
type message struct{ done, not string }

var messages = map[mutex.Op]message{
	mutex.OpLock:   {"distmutex: lock acquired", "distmutex: lock not acquired"},
	mutex.OpRenew:  {"distmutex: lock renewed", "distmutex: lock not renewed"},
	mutex.OpUnlock: {"distmutex: lock released", "distmutex: lock not released"},
	mutex.OpEnded:  {"distmutex: hold ended", "distmutex: lock lost"},
}

func (lg *logger) log(ctx context.Context, m message, e mutex.Event, took time.Duration, err error) {
	at, to := level(e, err), or(lg.l)
	if !to.Enabled(ctx, at) {
		return
	}
	if e.Op == mutex.OpEnded {
		took = e.Held
	}
	attrs := append(make([]slog.Attr, 0, 6), slog.String("key", e.Key), slog.Duration("duration", took))
	if e.Token != 0 {
		attrs = append(attrs, slog.Int64("token", int64(e.Token)))
	}
	if e.Op == mutex.OpEnded {
		attrs = append(attrs, slog.String("reason", string(e.Why)))
	} else {
		attrs = append(attrs, slog.String("outcome", errorType(err)))
	}
	what := m.done
	if err != nil {
		what = m.not
		attrs = append(attrs, slog.Any("error", err))
	}
	to.LogAttrs(ctx, at, what, attrs...)
}

func level(e mutex.Event, err error) slog.Level {
	switch {
	case e.Op == mutex.OpEnded && (e.Why == mutex.Expired || e.Why == mutex.Taken):
		return slog.LevelError
	case e.Op == mutex.OpEnded && e.Why != mutex.Unlocked, e.Op == mutex.OpRenew && err != nil:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
