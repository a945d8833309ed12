package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// outcome is how something ended, in a word.
type outcome struct {
	word   string
	failed bool
	err    error
}

const (
	ok   = "ok"
	hint = "hint" // of a wait: try now
)

// outcomeOf tells what err means. That another holds the lock is never a
// failure, also where it made the caller's time run out.
func outcomeOf(err error) outcome {
	return outcome{word: errorType(err), failed: err != nil && !errors.Is(err, backend.ErrHeld), err: err}
}

// waited is the outcome of a wait. That the caller gave up is no failure.
func waited(ctx context.Context, got backend.Lease, err error) outcome {
	o := outcomeOf(err)
	if err == nil && got.TTL <= 0 {
		o.word = hint
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		o.failed = false
	}
	return o
}

// errorType is a word for err, of a small number of them.
func errorType(err error) string {
	var invalid *backend.InvalidError
	var typed interface{ ErrorType() string }
	switch {
	case err == nil:
		return ok
	case errors.Is(err, backend.ErrLost):
		return "lost"
	case errors.As(err, &invalid):
		return "invalid"
	case errors.Is(err, mutex.ErrClosed):
		return "closed"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, backend.ErrHeld):
		return "held"
	case errors.As(err, &typed):
		return typed.ErrorType()
	}
	return "unknown"
}

// failure is the error.type; none if it is not a failure.
func (o outcome) failure() string {
	if o.failed {
		return o.word
	}
	return ""
}

// end puts the outcome on the span and ends it.
func (o outcome) end(span trace.Span) {
	if span.IsRecording() {
		span.SetAttributes(attrOutcome.String(o.word))
		if o.failed {
			span.SetAttributes(attrError.String(o.word))
			span.SetStatus(codes.Error, o.err.Error())
		}
	}
	span.End()
}
