package telemetry_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/telemetry"
)

// Without options, the providers are OpenTelemetry's global ones, also those
// that are set later.
func ExampleNew() {
	tel, err := telemetry.New(nil)
	fmt.Println(tel != nil, err)
	// Output: true <nil>
}

// The layer goes around the backend that a session uses. Here it only measures.
func ExampleInstrumentation_Middleware() {
	ctx, reader := context.Background(), sdkmetric.NewManualReader()
	tel, err := telemetry.New(&telemetry.Options{
		TracerProvider: tracenoop.NewTracerProvider(),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := mutex.New(backend.Wrap(memory.New(nil), tel.Middleware), "report", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Lock(ctx)
	defer m.Unlock(ctx)

	var data metricdata.ResourceMetrics
	reader.Collect(ctx, &data)
	for _, metric := range data.ScopeMetrics[0].Metrics {
		if held, ok := metric.Data.(metricdata.Sum[int64]); ok && metric.Name == "distmutex.held" {
			fmt.Println(metric.Name, held.DataPoints[0].Value)
		}
	}
	// Output: distmutex.held 1
}
