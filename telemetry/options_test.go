package telemetry_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/telemetry"
)

func TestKeyOnMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &telemetry.Options{KeyOnMetrics: true})
		r.use(r.tel.Middleware(r.server), nil)
		for range 2 {
			r.lock()
			if err := r.m.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		r.wantMetrics(`acquire.duration{key=k,outcome=ok} 2: 0s`, `acquire.attempts{key=k,outcome=ok} 2: 2`, `waiting{key=k} 0`, `held{key=k} 0`,
			`hold.duration{key=k,reason=unlocked} 2: 0s`, `release.duration{key=k,outcome=ok} 2: 0s`)
	})
}

// The names and units are what dashboards depend on.
func TestInstruments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.server.name = "a"
		r.use(r.tel.Middleware(r.server), &mutex.Options{TTL: ttl, MaxHold: 2 * ttl})
		r.lock()
		<-r.m.Current().Lost()
		synctest.Wait() // it is counted a moment after it is told
		r.session.Close(t.Context())
		r.use(r.tel.Middleware(r.server), nil)
		r.lock()
		r.m.Unlock(t.Context())
		var data metricdata.ResourceMetrics
		if err := r.reader.Collect(t.Context(), &data); err != nil {
			t.Fatal(err)
		}
		units := map[string]string{}
		for _, m := range data.ScopeMetrics[0].Metrics {
			units[m.Name] = m.Unit
			if m.Description == "" {
				t.Errorf("%s has no description", m.Name)
			}
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && h.DataPoints[0].Bounds[0] >= .01 {
				t.Errorf("%s has the buckets of milliseconds: %v", m.Name, h.DataPoints[0].Bounds)
			}
		}
		for name, unit := range map[string]string{
			"distmutex.acquire.duration": "s", "distmutex.hold.duration": "s", "distmutex.renew.duration": "s",
			"distmutex.release.duration": "s", "distmutex.node.duration": "s", "distmutex.acquire.attempts": "{attempt}",
			"distmutex.waiting": "{caller}", "distmutex.held": "{lock}", "distmutex.lost": "{lock}",
		} {
			if units[name] != unit {
				t.Errorf("%s: unit %q, want %q", name, units[name], unit)
			}
		}
		if len(units) != 9 {
			t.Errorf("got %v", units)
		}
	})
}

// Only one of the two is measured where the other has a noop provider.
func TestMetricsOrTracesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
		metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		for _, o := range []*telemetry.Options{
			{TracerProvider: noop.NewTracerProvider(), MeterProvider: metrics},
			{TracerProvider: traces, MeterProvider: metricnoop.NewMeterProvider()},
		} {
			tel, err := telemetry.New(o)
			if err != nil {
				t.Fatal(err)
			}
			cycle(t, tel.Middleware(memory.New(nil)))
		}
		r := &rig{t: t, reader: reader, spans: spans}
		r.wantMetrics(counted(`held{} 0`, `hold.duration{reason=unlocked} 1: 0s`, `release.duration{outcome=ok} 1: 0s`)...)
		r.wantSpans(acquired("release lock ~ acquire lock: 0s, ok, token 1")...)
	})
}

func cycle(t *testing.T, b backend.Backend) {
	t.Helper()
	m, err := mutex.New(b, "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	lockUnlock(t, t.Context(), m)
}

// A Lock that is not sampled has no sampled parts.
func TestWhatIsNotSampledHasNoParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		tel, err := telemetry.New(&telemetry.Options{
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(noLocks{})),
			MeterProvider:  metricnoop.NewMeterProvider(),
		})
		if err != nil {
			t.Fatal(err)
		}
		cycle(t, tel.Middleware(memory.New(nil)))
		if got := spans.Ended(); len(got) != 1 || got[0].Name() != "release lock" {
			t.Errorf("got %v", got)
		}
	})
}

// noLocks samples all but the spans of a Lock, which it must be able to tell
// from those of a TryLock.
type noLocks struct{ sdktrace.Sampler }

func (noLocks) Description() string { return "no locks" }

func (noLocks) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	for _, kv := range p.Attributes {
		if kv.Key == "distmutex.try" && !kv.Value.AsBool() {
			return sdktrace.SamplingResult{Decision: sdktrace.Drop}
		}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}

// A global provider that is set later is used from then on, by the holds that
// begin then. It can be set once in a process, so the test has one of its own.
func TestGlobalProvidersSetLater(t *testing.T) {
	const own = "DISTMUTEX_TEST_GLOBALS"
	if os.Getenv(own) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGlobalProvidersSetLater$", "-test.v")
		cmd.Env = append(os.Environ(), own+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestGlobal") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	tel, err := telemetry.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mutex.New(tel.Middleware(memory.New(nil)), "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()} // no bubble: nothing waits
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans)))
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)))
	if err := m.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.metricNames(); got != "release.duration{outcome=ok}" {
		t.Errorf("metrics of what began before: %s", got)
	}
	if err := m.TryLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "acquire.attempts{outcome=ok} acquire.duration{outcome=ok} held{} hold.duration{reason=unlocked} release.duration{outcome=ok}"
	if got := r.metricNames(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := len(r.spans.Ended()); got != 4 {
		t.Errorf("%d spans, want 4", got)
	}
}

// metricNames are what metrics gives, without the values.
func (r *rig) metricNames() string {
	var all []string
	for _, m := range r.metrics() {
		all = append(all, strings.Fields(m)[0])
	}
	return strings.Join(all, " ")
}

// refusing is a MeterProvider that makes one instrument less.
type refusing struct{ metricnoop.MeterProvider }

type refusingMeter struct{ metricnoop.Meter }

var errMeter = errors.New("no such instrument")

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errMeter
}

func TestInstrumentsThatCannotBeMade(t *testing.T) {
	if _, err := telemetry.New(&telemetry.Options{MeterProvider: refusing{}}); !errors.Is(err, errMeter) {
		t.Errorf("got %v, want %v", err, errMeter)
	}
}
