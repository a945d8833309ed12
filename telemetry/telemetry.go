package telemetry

import (
	"reflect"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// ScopeName is the instrumentation scope of all spans and metrics.
const ScopeName = "github.com/distmutex/distmutex/telemetry"

// Options are the settings of an Instrumentation. Nil and zero are good.
type Options struct {
	// TracerProvider and MeterProvider receive what is measured; nil: the
	// global ones of package otel, which may be set later. To have only one of
	// the two, give the noop provider for the other.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider

	// KeyOnMetrics puts the key on metrics too. It is for programs with a few
	// keys: each one makes new time series.
	KeyOnMetrics bool
}

// Instrumentation measures locks. One serves any number of backends, at the
// same time.
type Instrumentation struct {
	tracer trace.Tracer
	off    bool                                 // nothing traces, ever
	global bool                                 // the provider is the global one, which may have no SDK yet
	idle   atomic.Pointer[trace.TracerProvider] // the global one that was seen to trace nothing

	meters *meters
}

// New makes the instruments. An error is that of the MeterProvider.
func New(o *Options) (*Instrumentation, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	t := &Instrumentation{global: opts.TracerProvider == nil}
	if t.global {
		opts.TracerProvider = otel.GetTracerProvider()
	} else {
		_, t.off = opts.TracerProvider.(noop.TracerProvider)
	}
	if opts.MeterProvider == nil {
		opts.MeterProvider = otel.GetMeterProvider()
	}
	t.tracer = opts.TracerProvider.Tracer(ScopeName)
	var err error
	t.meters, err = newMeters(opts.MeterProvider.Meter(ScopeName), opts.KeyOnMetrics)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Middleware is a layer that measures b. It is a mutex.Observer, so a session
// that is given the layer tells it of waits, holds and losses, and it passes
// them on to an observer below. It offers Wait if b does.
//
// Around the node of a quorum it measures what the node does, by its name: see
// the package's own page.
func (t *Instrumentation) Middleware(b backend.Backend) backend.Backend {
	l := &layer{t: t, inner: b}
	l.next, _ = backend.As[mutex.Observer](b)
	if named, ok := backend.As[interface{ Name() string }](b); ok {
		l.node = named.Name()
	}
	if w, ok := backend.As[backend.Waiter](b); ok {
		return &waiter{l, w}
	}
	return l
}

// OnNode counts the nodes that are set aside. It is for quorum.Options.OnNode.
func (t *Instrumentation) OnNode(s backend.NodeState) { t.meters.setAside(s) }

// tracing says whether a span may come to something. While no SDK is there,
// even starting one costs more than all the rest.
func (t *Instrumentation) tracing() bool {
	if !t.global {
		return !t.off
	}
	idle := t.idle.Load()
	return idle == nil || *idle != otel.GetTracerProvider()
}

// learn notes that the global provider makes spans that are none, until another
// one is set. Those of an SDK are valid even if they are not recorded.
func (t *Instrumentation) learn(span trace.Span) {
	if !t.global || span.SpanContext().IsValid() {
		return
	}
	if p := otel.GetTracerProvider(); reflect.ValueOf(p).Comparable() {
		t.idle.Store(&p)
	}
}
