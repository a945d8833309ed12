package telemetry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/telemetry"
)

const (
	ms  = time.Millisecond
	ttl = 10 * time.Second
)

// server is a backend in memory that remembers all owners, and whose verbs can
// be replaced.
type server struct {
	*memory.Backend
	name string

	mu      sync.Mutex
	owners  []string
	acquire func(context.Context, backend.Lease) (backend.Lease, error)
	renew   func(context.Context, backend.Lease) error
	release func(context.Context, backend.Lease) error
}

func (s *server) Name() string { return s.name }

// change changes the server while it may be in use.
func (s *server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *server) see(l backend.Lease) {
	s.change(func() { s.owners = append(s.owners, l.Owner) })
}

func (s *server) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	s.see(want)
	s.mu.Lock()
	f := s.acquire
	s.mu.Unlock()
	if f == nil {
		f = s.Backend.Acquire
	}
	return f(ctx, want)
}

func (s *server) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	s.see(want)
	return s.Backend.Wait(ctx, want)
}

func (s *server) Renew(ctx context.Context, held backend.Lease) error {
	s.mu.Lock()
	f := s.renew
	s.mu.Unlock()
	if f == nil {
		f = s.Backend.Renew
	}
	return f(ctx, held)
}

func (s *server) Release(ctx context.Context, held backend.Lease) error {
	s.mu.Lock()
	f := s.release
	s.mu.Unlock()
	if f == nil {
		f = s.Backend.Release
	}
	return f(ctx, held)
}

// steal frees the key under its holder and takes it.
func (s *server) steal(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	owner := s.owners[len(s.owners)-1]
	s.mu.Unlock()
	err := s.Backend.Release(t.Context(), backend.Lease{Key: "k", Owner: owner, TTL: ttl, Token: 1, Start: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backend.Acquire(t.Context(), backend.Lease{Key: "k", Owner: "thief", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
}

// rig is a measured session and all that is exported of it.
type rig struct {
	t       *testing.T
	server  *server
	spans   *tracetest.SpanRecorder
	reader  *sdkmetric.ManualReader
	traces  trace.TracerProvider
	tel     *telemetry.Instrumentation
	session *mutex.Session
	m       *mutex.Leased
}

// bubble runs f on a rig in a synctest bubble. Whatever f does, no owner may be
// exported. The session does not renew if o is nil.
func bubble(t *testing.T, o *mutex.Options, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.use(r.tel.Middleware(r.server), o)
		f(t, r)
		r.noOwner()
	})
}

func newRig(t *testing.T, o *telemetry.Options) *rig {
	t.Helper()
	r := &rig{t: t, server: &server{Backend: memory.New(nil)}, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	if o == nil {
		o = &telemetry.Options{}
	}
	r.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	o.TracerProvider = r.traces
	o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	var err error
	if r.tel, err = telemetry.New(o); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) use(b backend.Backend, o *mutex.Options) {
	r.t.Helper()
	if o == nil {
		o = &mutex.Options{TTL: ttl, RenewEvery: -1}
	}
	var err error
	if r.session, err = mutex.NewSession(b, o); err != nil {
		r.t.Fatal(err)
	}
	r.m = r.session.Mutex("k")
}

// elsewhere holds the key in another process for d.
func (r *rig) elsewhere(d time.Duration) {
	r.t.Helper()
	_, err := r.server.Backend.Acquire(r.t.Context(), backend.Lease{Key: "k", Owner: "stranger", TTL: d})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) lock() {
	r.t.Helper()
	if err := r.m.Lock(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// wantSpans compares the spans that have ended with want; each is
//
//	name < parent ~ linked: duration, outcome, attributes that are set
//
// where a failed one has "!" before the outcome.
func (r *rig) wantSpans(want ...string) {
	r.t.Helper()
	synctest.Wait()
	var got []string
	for _, s := range r.spans.Ended() {
		got = append(got, r.describe(s, r.names()))
	}
	if len(r.spans.Started()) != len(got) {
		r.t.Errorf("%d spans started, %d ended", len(r.spans.Started()), len(got))
	}
	slices.Sort(got) // what ends at one time, ends in any order
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("spans:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// names are those of all spans that were started.
func (r *rig) names() map[trace.SpanID]string {
	names := map[trace.SpanID]string{}
	for _, s := range r.spans.Started() {
		names[s.SpanContext().SpanID()] = s.Name()
	}
	return names
}

// ended are the spans that have ended, by name, in order.
func (r *rig) ended() map[string][]sdktrace.ReadOnlySpan {
	synctest.Wait()
	all := map[string][]sdktrace.ReadOnlySpan{}
	for _, s := range r.spans.Ended() {
		all[s.Name()] = append(all[s.Name()], s)
	}
	return all
}

func (r *rig) tracer() trace.Tracer { return r.traces.Tracer("test") }

func (r *rig) describe(s sdktrace.ReadOnlySpan, names map[trace.SpanID]string) string {
	line := s.Name()
	if s.Parent().IsValid() {
		line += " < " + names[s.Parent().SpanID()]
	}
	for _, l := range s.Links() {
		line += " ~ " + names[l.SpanContext.SpanID()]
	}
	line += fmt.Sprintf(": %v", s.EndTime().Sub(s.StartTime()))
	attrs := map[string]attribute.Value{}
	for _, kv := range s.Attributes() {
		attrs[string(kv.Key)] = kv.Value
	}
	outcome := attrs["distmutex.outcome"].AsString()
	failure, failed := attrs["error.type"]
	switch {
	case s.Status().Code == codes.Error && failed && failure.AsString() == outcome:
		outcome = "!" + outcome
	case s.Status().Code != codes.Unset || failed:
		r.t.Errorf("%s: status %v, error.type %q, outcome %q", s.Name(), s.Status(), failure.AsString(), outcome)
	}
	line += ", " + outcome
	for _, name := range []string{"token", "attempts", "try", "node"} {
		if v, ok := attrs["distmutex."+name]; ok && v.String() != "false" {
			line += fmt.Sprintf(", %s %s", name, v.String())
		}
	}
	if attrs["distmutex.key"].AsString() != "k" || s.SpanKind() != trace.SpanKindInternal || len(s.Events()) > 0 ||
		s.InstrumentationScope().Name != telemetry.ScopeName {
		r.t.Errorf("%s: key %q, kind %v, events %v, scope %v", s.Name(), attrs["distmutex.key"].AsString(), s.SpanKind(), s.Events(), s.InstrumentationScope())
	}
	return line
}

// noOwner fails if an owner, or a part of one, is in anything exported.
func (r *rig) noOwner() {
	r.t.Helper()
	synctest.Wait()
	text := fmt.Sprintf("%+v", r.metrics())
	for _, s := range tracetest.SpanStubsFromReadOnlySpans(r.spans.Ended()) {
		text += fmt.Sprintf("%+v", s)
	}
	r.ownerNotIn(text)
}

func (r *rig) ownerNotIn(text string) {
	r.t.Helper()
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if len(r.server.owners) == 0 && len(text) > 4000 {
		r.t.Error("no owner was seen: the check is blind")
	}
	for _, o := range r.server.owners {
		if strings.Contains(text, o[:12]) {
			r.t.Errorf("owner %s was exported", o)
		}
	}
}
