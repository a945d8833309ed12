package telemetry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/distmutex/distmutex/telemetry"
)

// wantMetrics compares all metrics with want; each is
//
//	name{attributes} value
//
// the names without distmutex, the value of a histogram being its count and sum.
func (r *rig) wantMetrics(want ...string) {
	r.t.Helper()
	synctest.Wait()
	got := r.metrics()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("metrics:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func (r *rig) metrics() []string {
	r.t.Helper()
	var data metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &data); err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, scope := range data.ScopeMetrics {
		if scope.Scope.Name != telemetry.ScopeName {
			r.t.Errorf("scope %v", scope.Scope)
		}
		for _, m := range scope.Metrics {
			all = append(all, points(m)...)
		}
	}
	slices.Sort(all)
	return all
}

func points(m metricdata.Metrics) []string {
	var all []string
	add := func(attrs attribute.Set, format string, values ...any) {
		var kvs []string
		for _, kv := range attrs.ToSlice() {
			kvs = append(kvs, strings.TrimPrefix(string(kv.Key), "distmutex.")+"="+kv.Value.String())
		}
		all = append(all, fmt.Sprintf("%s{%s} ", strings.TrimPrefix(m.Name, "distmutex."), strings.Join(kvs, ","))+fmt.Sprintf(format, values...))
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			add(p.Attributes, "%d", p.Value)
		}
	case metricdata.Histogram[int64]:
		for _, p := range d.DataPoints {
			add(p.Attributes, "%d: %d", p.Count, p.Sum)
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			add(p.Attributes, "%d: %gs", p.Count, p.Sum)
		}
	default:
		all = append(all, fmt.Sprintf("%s is a %T", m.Name, d))
	}
	return all
}

// histogram is how wantMetrics shows one that took d once.
func histogram(name string, d time.Duration) string {
	return fmt.Sprintf("%s 1: %gs", name, d.Seconds())
}
