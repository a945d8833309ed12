package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/telemetry"
)

// A program gives its providers, or none if they are otel's global ones. Here a
// recorder takes the place of an exporter.
func Example() {
	ctx := context.Background()
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	tel, err := telemetry.New(&telemetry.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	m, err := mutex.New(tel.Middleware(memory.New(nil)), "report", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Lock(ctx)
	m.TryLock(ctx)
	m.Unlock(ctx)

	for _, s := range spans.Ended() {
		fmt.Printf("%s:", s.Name())
		for _, a := range s.Attributes() {
			fmt.Printf(" %s=%s", a.Key, a.Value.String())
		}
		fmt.Println()
	}
	var data metricdata.ResourceMetrics
	reader.Collect(ctx, &data)
	for _, metric := range data.ScopeMetrics[0].Metrics {
		fmt.Println(metric.Name)
	}
	// Output:
	// acquire attempt: distmutex.key=report distmutex.token=1 distmutex.outcome=ok
	// acquire lock: distmutex.key=report distmutex.try=false distmutex.token=1 distmutex.attempts=1 distmutex.outcome=ok
	// acquire lock: distmutex.key=report distmutex.try=true distmutex.attempts=0 distmutex.outcome=held
	// release lock: distmutex.key=report distmutex.token=1 distmutex.outcome=ok
	// distmutex.acquire.duration
	// distmutex.hold.duration
	// distmutex.release.duration
	// distmutex.waiting
	// distmutex.held
	// distmutex.acquire.attempts
}

// printer logs to the standard output, without what differs from run to run.
func printer() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" {
				return slog.Attr{}
			}
			return a
		},
	}))
}

func ExampleLog() {
	ctx := context.Background()
	s, err := mutex.NewSession(backend.Wrap(memory.New(nil), telemetry.Log(printer())), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Mutex("report").Lock(ctx)
	s.Close(ctx)
	// Output:
	// level=DEBUG msg="distmutex: lock acquired" key=report outcome=ok
	// level=WARN msg="distmutex: lock lost" key=report token=1 reason=closed error="lost \"report\": closed"
	// level=DEBUG msg="distmutex: lock released" key=report token=1 outcome=ok
}

func ExampleLogNode() {
	onNode := telemetry.LogNode(printer()) // for quorum.Options
	onNode(backend.NodeState{Name: "r1:6379", Aside: true, Err: errors.New("connection refused")})
	onNode(backend.NodeState{Name: "r1:6379"})
	// Output:
	// level=WARN msg="distmutex: node set aside" node=r1:6379 error="connection refused"
	// level=INFO msg="distmutex: node in use again" node=r1:6379
}

func ExampleInstrumentation_OnNode() {
	tel, err := telemetry.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes := []backend.Backend{memory.New(nil), memory.New(nil), memory.New(nil)}
	for i, n := range nodes {
		nodes[i] = tel.Middleware(n)
	}
	q, err := quorum.New(nodes, &quorum.Options{OnNode: tel.OnNode})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := mutex.New(tel.Middleware(q), "report", nil)
	fmt.Println(m.Key(), err)
	// Output: report <nil>
}
