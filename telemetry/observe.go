package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/distmutex/distmutex/mutex"
)

// operation is an event that takes time. It travels in the context: to the
// calls of the backend that are made for it, and from a Lock to what becomes of
// its hold.
type operation struct {
	op       mutex.Op
	try      bool
	metrics  bool // what began uncounted is not counted when it ends
	begun    time.Time
	span     trace.Span
	recorded bool // the span was recording, as long as it lasted
	attempts atomic.Int64
}

// operationOf is the key of a layer's operation. Layers, of the nodes of a
// quorum for instance, don't see those of others.
type operationOf struct{ *layer }

func (l *layer) operation(ctx context.Context) *operation {
	o, _ := ctx.Value(operationOf{l}).(*operation)
	return o
}

// Observe makes a layer a mutex.Observer.
func (l *layer) Observe(ctx context.Context, e mutex.Event) (context.Context, func(error)) {
	var end func(error)
	switch e.Op {
	case mutex.OpLock:
		ctx, end = l.begin(ctx, e, "acquire lock")
	case mutex.OpRenew:
		// The trace of the Lock is over, perhaps for long.
		ctx, end = l.begin(ctx, e, "renew lock", trace.WithNewRoot())
	case mutex.OpUnlock:
		ctx, end = l.begin(ctx, e, "release lock")
	case mutex.OpAcquired:
		l.acquired(ctx, e)
	case mutex.OpEnded:
		l.ended(ctx, e)
	}
	return pass(l.next, ctx, e, end)
}

// pass tells the observer below too: only the outermost is told by others.
func pass(next mutex.Observer, ctx context.Context, e mutex.Event, end func(error)) (context.Context, func(error)) {
	if next == nil {
		return ctx, end
	}
	ctx, inner := next.Observe(ctx, e)
	switch {
	case inner == nil:
		return ctx, end
	case end == nil:
		return ctx, inner
	}
	return ctx, func(err error) {
		inner(err)
		end(err)
	}
}

func (l *layer) begin(ctx context.Context, e mutex.Event, name string, how ...trace.SpanStartOption) (context.Context, func(error)) {
	tracing, metrics := l.t.tracing(), l.t.meters.enabled(ctx)
	if !tracing && !metrics {
		return ctx, nil
	}
	o := &operation{op: e.Op, try: e.Try, metrics: metrics, begun: time.Now(), span: none}
	if tracing {
		ctx, o.span = l.span(ctx, name, e.Key, append(how, l.about(e)...)...)
		o.recorded = o.span.IsRecording()
	}
	if metrics && e.Op == mutex.OpLock && !e.Try {
		l.t.meters.count(ctx, l.t.meters.waiting, 1, e.Key)
	}
	octx := context.WithValue(ctx, operationOf{l}, o)
	return octx, func(err error) { l.end(octx, o, e.Key, outcomeOf(err)) }
}

// none stands for a span where there is none.
var none = trace.SpanFromContext(context.Background())

// about is what a span has of its event; what comes of a hold leads to the span
// of the Lock that got it.
func (l *layer) about(e mutex.Event) []trace.SpanStartOption {
	if e.Op == mutex.OpLock {
		return []trace.SpanStartOption{trace.WithAttributes(attrTry.Bool(e.Try))}
	}
	var opts []trace.SpanStartOption
	if e.Token != 0 {
		opts = append(opts, trace.WithAttributes(attrToken.Int64(int64(e.Token))))
	}
	if o := l.locked(e); o != nil && o.span.SpanContext().IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: o.span.SpanContext()}))
	}
	return opts
}

func (l *layer) end(ctx context.Context, o *operation, key string, out outcome) {
	if o.metrics {
		m, took := l.t.meters, time.Since(o.begun)
		as := labels{key: key, outcome: out.word, failure: out.failure()}
		switch o.op {
		case mutex.OpLock:
			m.took(ctx, m.acquire, took, as)
			m.attempts.Record(ctx, o.attempts.Load(), m.with(as).record...)
			if !o.try {
				m.count(ctx, m.waiting, -1, key)
			}
		case mutex.OpRenew:
			m.took(ctx, m.renew, took, as)
		case mutex.OpUnlock:
			m.took(ctx, m.release, took, as)
		}
	}
	if o.op == mutex.OpLock && o.span.IsRecording() {
		o.span.SetAttributes(attrAttempts.Int64(o.attempts.Load()))
	}
	out.end(o.span)
}

// locked is the operation that a hold comes from; nil if that was not measured.
func (l *layer) locked(e mutex.Event) *operation {
	if e.Link == nil || !l.t.tracing() && !l.t.meters.enabled(e.Link) {
		return nil
	}
	return l.operation(e.Link)
}

func (l *layer) acquired(ctx context.Context, e mutex.Event) {
	o := l.locked(e)
	if o == nil {
		return
	}
	if e.Token != 0 && o.span.IsRecording() {
		o.span.SetAttributes(attrToken.Int64(int64(e.Token)))
	}
	if o.metrics {
		l.t.meters.count(ctx, l.t.meters.held, 1, e.Key)
	}
}

func (l *layer) ended(ctx context.Context, e mutex.Event) {
	o := l.locked(e)
	if o == nil || !o.metrics {
		return
	}
	m, why := l.t.meters, labels{key: e.Key, reason: string(e.Why)}
	m.count(ctx, m.held, -1, e.Key)
	m.took(ctx, m.hold, e.Held, why)
	if e.Why != mutex.Unlocked {
		m.lost.Add(ctx, 1, m.with(why).add...)
	}
}
