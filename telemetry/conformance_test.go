package telemetry_test

import (
	"testing"
	"testing/synctest"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/retry"
	"github.com/distmutex/distmutex/telemetry"
)

// The layers change nothing that the contract says of the backend below.
func TestConformance(t *testing.T) {
	paced := retry.Middleware(retry.FullJitter(ms, 10*ms))
	recording := func(t testing.TB) backend.Middleware {
		tel, err := telemetry.New(&telemetry.Options{
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tracetest.NewSpanRecorder())),
			MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		})
		if err != nil {
			t.Fatal(err)
		}
		return tel.Middleware
	}
	for name, layers := range map[string]func(t testing.TB) []backend.Middleware{
		"otel":        func(t testing.TB) []backend.Middleware { return []backend.Middleware{recording(t)} },
		"log":         func(t testing.TB) []backend.Middleware { return []backend.Middleware{telemetry.Log(nil)} },
		"above retry": func(t testing.TB) []backend.Middleware { return []backend.Middleware{recording(t), paced} },
		"below retry": func(t testing.TB) []backend.Middleware { return []backend.Middleware{paced, recording(t)} },
		"idle": func(t testing.TB) []backend.Middleware {
			return []backend.Middleware{layerings(t)["noop"], layerings(t)["global"]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Harness{
				New:    func(t testing.TB) backend.Backend { return backend.Wrap(memory.New(nil), layers(t)...) },
				Around: synctest.Test,
			})
		})
	}
}
