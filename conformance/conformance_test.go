package conformance_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/conformance"
)

func newMemory(testing.TB) backend.Backend { return memory.New(nil) }

func TestMemory(t *testing.T) {
	conformance.Run(t, conformance.Harness{New: newMemory})
}

func TestMemoryInBubbles(t *testing.T) {
	conformance.Run(t, conformance.Harness{New: newMemory, Around: synctest.Test})
}

// identity is a layer that changes nothing, and through which the Waiter below
// is found.
type identity struct{ backend.Backend }

func (i identity) Unwrap() backend.Backend { return i.Backend }

func TestThroughAMiddleware(t *testing.T) {
	layer := func(b backend.Backend) backend.Backend { return identity{b} }
	conformance.Run(t, conformance.Harness{Around: synctest.Test, New: func(testing.TB) backend.Backend {
		return backend.Wrap(memory.New(nil), layer, layer)
	}})
}

// hinting is a Waiter that never grants: it says every now and then that it may
// be worth a try, as one does that polls.
type hinting struct{ backend.Backend }

func (h hinting) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if err := want.Validate(); err != nil {
		return backend.Lease{}, err
	}
	if want.Ticket == "" {
		want.Ticket = "a place"
	}
	select {
	case <-ctx.Done():
		return backend.Lease{}, &backend.Error{Op: "wait", Key: want.Key, Err: ctx.Err()}
	case <-time.After(5 * time.Millisecond):
		return backend.Lease{Ticket: want.Ticket}, nil
	}
}

func TestAWaiterThatOnlyHints(t *testing.T) {
	conformance.Run(t, conformance.Harness{Around: synctest.Test, New: func(testing.TB) backend.Backend {
		return hinting{memory.New(nil)}
	}})
}

// unfenced hides the tokens.
type unfenced struct{ backend.Backend }

func (u unfenced) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	got, err := u.Backend.Acquire(ctx, want)
	got.Token = 0
	return got, err
}

// What a backend does not have is skipped in words, and the rest is checked.
func TestExemptionsAreVisible(t *testing.T) {
	h := conformance.Harness{Unfenced: true, NoExpiry: true, New: func(testing.TB) backend.Backend {
		return unfenced{memory.New(nil)}
	}}
	skipped := make(map[string]string)
	for _, id := range conformance.IDs() {
		r := record(t, h, id)
		if r.failed {
			t.Errorf("case %s:\n%s", id, r)
		}
		if r.skipped && !conformance.NeedsFaults(id) {
			skipped[id] = r.String()
		}
	}
	for id, want := range map[string]string{
		"tokens/over-release":  "not checked: the harness says that the backend is Unfenced",
		"term/ends":            "not checked: the harness says that the backend has NoExpiry",
		"wait/release":         "not checked: the backend has no Waiter",
		"exclusion/one-holder": "",
		"release/spares-next":  "",
	} {
		if got := skipped[id]; got != want {
			t.Errorf("case %s skipped with %q, want %q", id, got, want)
		}
	}
}

// Late is safe, and some servers cannot do better.
func TestServersThatEndLeasesLate(t *testing.T) {
	for name, late := range map[string]struct {
		of      func(time.Duration) time.Duration
		harness conformance.Harness
	}{
		"in whole seconds, two at least": {
			func(ttl time.Duration) time.Duration {
				return max((ttl + time.Second - 1).Truncate(time.Second), 2*time.Second)
			},
			conformance.Harness{Term: 2 * time.Second},
		},
		"after a while": {
			func(ttl time.Duration) time.Duration { return ttl + 1500*time.Millisecond },
			conformance.Harness{Late: 1500 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := late.harness
			h.New = harness(func(f *faulty) { f.termOf(late.of) }).New
			for _, id := range conformance.IDs() {
				if r := record(t, h, id); r.failed || r.skipped && !conformance.NeedsFaults(id) {
					t.Errorf("case %s:\n%s", id, r)
				}
			}
		})
	}
}

func TestNoFalseAlarm(t *testing.T) {
	for range 20 {
		for _, id := range conformance.IDs() {
			h := conformance.Harness{New: newMemory}
			if conformance.NeedsFaults(id) {
				h = simulated(defect{})
			}
			if r := record(t, h, id); r.failed || r.skipped {
				t.Fatalf("case %s on a sound backend:\n%s", id, r)
			}
		}
	}
}

func BenchmarkMemory(b *testing.B) {
	conformance.Benchmark(b, conformance.Harness{New: newMemory})
}
