package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// layer measures the calls of one backend.
type layer struct {
	t     *Instrumentation
	inner backend.Backend
	next  mutex.Observer // below; nil if there is none
	node  string         // the name of the server, if it is one and has one
}

func (l *layer) Unwrap() backend.Backend { return l.inner }

func (l *layer) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	ctx, c := l.call(ctx, acquire, want)
	got, err := l.inner.Acquire(ctx, want)
	c.end(ctx, granted(got, err), err)
	return got, err
}

func (l *layer) Renew(ctx context.Context, held backend.Lease) error {
	ctx, c := l.call(ctx, renew, held)
	err := l.inner.Renew(ctx, held)
	c.end(ctx, held.Token, err)
	return err
}

func (l *layer) Release(ctx context.Context, held backend.Lease) error {
	ctx, c := l.call(ctx, release, held)
	err := l.inner.Release(ctx, held)
	c.end(ctx, held.Token, err)
	return err
}

// waiter is a layer over a backend that offers Wait.
type waiter struct {
	*layer
	inner backend.Waiter
}

func (w *waiter) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	ctx, c := w.call(ctx, wait, want)
	got, err := w.inner.Wait(ctx, want)
	if err == nil && got.TTL > 0 && c.of != nil {
		c.of.attempts.Add(1) // it was one by itself: no Acquire follows
	}
	if c.span != nil {
		c.finish(granted(got, err), waited(ctx, got, err))
	}
	return got, err
}

// verb is what a backend is called for.
type verb struct {
	name string
	span string
	part mutex.Op // of which it is the whole: the span of that is its own
}

var (
	acquire = verb{"acquire", "acquire attempt", ""}
	renew   = verb{"renew", "renew attempt", mutex.OpRenew}
	release = verb{"release", "release attempt", mutex.OpUnlock}
	wait    = verb{"wait", "wait", ""}
)

// call is one call of the backend. What is not measured is zero.
type call struct {
	l     *layer
	of    *operation // in which it is made
	verb  verb
	span  trace.Span
	begun time.Time
}

// call begins one.
func (l *layer) call(ctx context.Context, v verb, lease backend.Lease) (context.Context, call) {
	c := call{l: l, verb: v}
	tracing := l.t.tracing()
	measured := l.node != "" && v != wait && l.t.meters.node.Enabled(ctx)
	if !tracing && !measured && !l.t.meters.enabled(ctx) {
		return ctx, c
	}
	if measured {
		c.begun = time.Now()
	}
	if c.of = l.operation(ctx); c.of != nil {
		if v == acquire {
			c.of.attempts.Add(1)
		}
		// The parts of what is not recorded are not recorded.
		tracing = tracing && c.of.op != v.part && c.of.recorded
	}
	if tracing {
		ctx, c.span = l.span(ctx, v.span, lease.Key)
	}
	return ctx, c
}

// span starts one.
func (l *layer) span(ctx context.Context, name, key string, more ...trace.SpanStartOption) (context.Context, trace.Span) {
	attrs := append(make([]attribute.KeyValue, 0, 2), attrKey.String(key))
	if l.node != "" {
		attrs = append(attrs, attrNode.String(l.node))
	}
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(attrs...)}
	ctx, span := l.t.tracer.Start(ctx, name, append(opts, more...)...)
	l.t.learn(span)
	return ctx, span
}

// granted is the token of a grant, if it is one.
func granted(got backend.Lease, err error) backend.Token {
	if err != nil || got.TTL <= 0 {
		return 0
	}
	return got.Token
}

func (c call) end(ctx context.Context, token backend.Token, err error) {
	if c.begun.IsZero() && c.span == nil {
		return
	}
	o := outcomeOf(err)
	if !c.begun.IsZero() {
		c.l.t.meters.took(ctx, c.l.t.meters.node, time.Since(c.begun),
			labels{verb: c.verb.name, node: c.l.node, outcome: o.word, failure: o.failure()})
	}
	if c.span != nil {
		c.finish(token, o)
	}
}

// finish ends the span.
func (c call) finish(token backend.Token, o outcome) {
	if token != 0 && c.span.IsRecording() {
		c.span.SetAttributes(attrToken.Int64(int64(token)))
	}
	o.end(c.span)
}
