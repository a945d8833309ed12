package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/distmutex/distmutex/backend"
)

// The attributes.
const (
	attrKey      = attribute.Key("distmutex.key")
	attrToken    = attribute.Key("distmutex.token")
	attrTry      = attribute.Key("distmutex.try")
	attrAttempts = attribute.Key("distmutex.attempts")
	attrOutcome  = attribute.Key("distmutex.outcome")
	attrReason   = attribute.Key("distmutex.reason")
	attrNode     = attribute.Key("distmutex.node")
	attrVerb     = attribute.Key("distmutex.operation")
	attrError    = attribute.Key("error.type")
)

// The buckets' upper bounds: those of the waits and holds reach to what locks
// are kept for, those of calls to what servers are given up after.
var (
	waitBounds    = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	holdBounds    = []float64{.001, .01, .1, .5, 1, 5, 10, 30, 60, 300, 900, 1800, 3600}
	callBounds    = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	attemptBounds = []float64{0, 1, 2, 3, 4, 6, 8, 12, 16, 32, 64}
)

// meters are the instruments, and the sets of attributes that they were used with.
type meters struct {
	withKey bool
	sets    sync.Map // labels to *set

	acquire, hold, renew, release, node metric.Float64Histogram
	attempts                            metric.Int64Histogram
	waiting, held, aside                metric.Int64UpDownCounter
	lost                                metric.Int64Counter
}

func newMeters(m metric.Meter, withKey bool) (*meters, error) {
	ms := &meters{withKey: withKey}
	var errs []error
	seconds := func(to *metric.Float64Histogram, name, what string, bounds []float64) {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what),
			metric.WithExplicitBucketBoundaries(bounds...))
		*to = h
		errs = append(errs, err)
	}
	upDown := func(to *metric.Int64UpDownCounter, name, unit, what string) {
		c, err := m.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		*to = c
		errs = append(errs, err)
	}
	seconds(&ms.acquire, "distmutex.acquire.duration", "How long Lock and TryLock took, the wait included.", waitBounds)
	seconds(&ms.hold, "distmutex.hold.duration", "How long locks were held.", holdBounds)
	seconds(&ms.renew, "distmutex.renew.duration", "How long attempts to renew took.", callBounds)
	seconds(&ms.release, "distmutex.release.duration", "How long releases by Unlock and Close took.", callBounds)
	seconds(&ms.node, "distmutex.node.duration", "How long calls of one lock server took.", callBounds)
	upDown(&ms.waiting, "distmutex.waiting", "{caller}", "Callers that Lock keeps waiting.")
	upDown(&ms.held, "distmutex.held", "{lock}", "Locks held.")
	upDown(&ms.aside, "distmutex.node.aside", "{node}", "Nodes set aside by a quorum.")
	var err error
	ms.attempts, err = m.Int64Histogram("distmutex.acquire.attempts", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts that a Lock or TryLock made."), metric.WithExplicitBucketBoundaries(attemptBounds...))
	errs = append(errs, err)
	ms.lost, err = m.Int64Counter("distmutex.lost", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks lost before they were unlocked."))
	return ms, errors.Join(append(errs, err)...)
}

// enabled says whether any measurement of a lock has an effect.
func (m *meters) enabled(ctx context.Context) bool {
	return m.acquire.Enabled(ctx) || m.held.Enabled(ctx) || m.lost.Enabled(ctx) || m.waiting.Enabled(ctx) ||
		m.hold.Enabled(ctx) || m.attempts.Enabled(ctx) || m.renew.Enabled(ctx) || m.release.Enabled(ctx)
}

// labels are the attributes of a measurement; empty ones are left out.
type labels struct{ key, outcome, failure, reason, node, verb string }

// set is labels as instruments take them.
type set struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

// with makes the set of labels once, unless it has the key: of those there is
// no end.
func (m *meters) with(l labels) *set {
	if !m.withKey {
		l.key = ""
	}
	if s, ok := m.sets.Load(l); ok {
		return s.(*set)
	}
	var kvs []attribute.KeyValue
	for _, kv := range []attribute.KeyValue{
		attrKey.String(l.key), attrOutcome.String(l.outcome), attrError.String(l.failure),
		attrReason.String(l.reason), attrNode.String(l.node), attrVerb.String(l.verb),
	} {
		if kv.Value.AsString() != "" {
			kvs = append(kvs, kv)
		}
	}
	o := metric.WithAttributeSet(attribute.NewSet(kvs...))
	s := &set{[]metric.RecordOption{o}, []metric.AddOption{o}}
	if l.key == "" {
		m.sets.Store(l, s)
	}
	return s
}

func (m *meters) count(ctx context.Context, c metric.Int64UpDownCounter, by int64, key string) {
	c.Add(ctx, by, m.with(labels{key: key}).add...)
}

func (m *meters) took(ctx context.Context, h metric.Float64Histogram, d time.Duration, l labels) {
	h.Record(ctx, d.Seconds(), m.with(l).record...)
}

// setAside adds up changes, so that those of several quorums, or told out of
// order, come out right.
func (m *meters) setAside(s backend.NodeState) {
	by := int64(-1)
	if s.Aside {
		by = 1
	}
	m.aside.Add(context.Background(), by, m.with(labels{node: s.Name}).add...)
}
