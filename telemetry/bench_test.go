package telemetry_test

import (
	"context"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/telemetry"
)

// layerings are the ways to measure, or not.
func layerings(t testing.TB) map[string]backend.Middleware {
	measured := func(o *telemetry.Options) backend.Middleware {
		tel, err := telemetry.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return tel.Middleware
	}
	return map[string]backend.Middleware{
		"none":   func(b backend.Backend) backend.Backend { return b },
		"noop":   measured(&telemetry.Options{TracerProvider: noop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()}),
		"global": measured(nil), // no SDK is installed here
		"sdk": measured(&telemetry.Options{
			TracerProvider: sdktrace.NewTracerProvider(),
			MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		}),
	}
}

func lockUnlock(tb testing.TB, ctx context.Context, m *mutex.Leased) {
	if err := m.Lock(ctx); err != nil {
		tb.Fatal(err)
	}
	if err := m.Unlock(ctx); err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkLockUnlock(b *testing.B) {
	for _, name := range []string{"none", "noop", "global", "sdk"} {
		b.Run(name, func(b *testing.B) {
			m, err := mutex.New(layerings(b)[name](memory.New(nil)), "k", nil)
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				lockUnlock(b, ctx, m)
			}
		})
	}
}

// Without a provider that records, a Lock and an Unlock allocate no more than
// the session does for any observer: the context that a hold keeps.
func TestNothingRecordedAllocatesNothing(t *testing.T) {
	allocs := map[string]float64{}
	for name, layer := range layerings(t) {
		m, err := mutex.New(layer(memory.New(nil)), "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		allocs[name] = testing.AllocsPerRun(100, func() { lockUnlock(t, ctx, m) })
	}
	for _, name := range []string{"noop", "global"} {
		if more := allocs[name] - allocs["none"]; more > 2 {
			t.Errorf("%s: %v allocations more than without the layer; want at most 2", name, more)
		}
	}
	if allocs["sdk"] < allocs["none"]+5 {
		t.Errorf("what records allocates %v of %v: is it measured at all?", allocs["sdk"], allocs["none"])
	}
}
