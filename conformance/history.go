package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// history is what the clients of a case asked, and what they were answered. Its
// moments are the places in one sequence of events, which orders them even where
// a clock does not.
type history struct {
	mu    sync.Mutex
	calls []*call     // as they began
	at    []time.Time // of each event; they never go back
}

// call is one call of a verb, or with the verb fault something that the harness
// was asked to do.
type call struct {
	client     string
	verb       string
	asked, got backend.Lease
	err        error
	began      int
	ended      int // zero: it has not returned
}

// now is the next event. h.mu is held. The first is 1.
func (h *history) now() int {
	h.at = append(h.at, time.Now())
	return len(h.at)
}

func (h *history) time(event int) time.Time { return h.at[event-1] }

func (h *history) begin(client, verb string, asked backend.Lease) *call {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &call{client: client, verb: verb, asked: asked, began: h.now()}
	if asked.Start.IsZero() {
		c.asked.Start = h.time(c.began)
	}
	h.calls = append(h.calls, c)
	return c
}

func (h *history) end(c *call, got backend.Lease, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.got, c.err, c.ended = got, err, h.now()
	if got.Start.IsZero() {
		c.got.Start = c.asked.Start
	}
}

// of is the part of the history that is about one key.
func (h *history) of(key string) *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	part := &history{at: h.at}
	for _, c := range h.calls {
		if c.asked.Key == key || c.verb == "fault" {
			copied := *c
			part.calls = append(part.calls, &copied)
		}
	}
	return part
}

// asks says that the call may end in a grant.
func (c *call) asks() bool { return c.verb == "acquire" || c.verb == "wait" }

func (c *call) granted() bool { return c.asks() && c.ended > 0 && c.err == nil && c.got.TTL > 0 }

// hint says that a Wait ended without a grant.
func (c *call) hint() bool { return c.verb == "wait" && c.err == nil && c.ended > 0 && c.got.TTL == 0 }

// unknown says that the call may have had its effect or not, or may have it yet.
func (c *call) unknown() bool {
	return c.ended == 0 || c.err != nil && !errors.Is(c.err, backend.ErrHeld) && !errors.Is(c.err, backend.ErrLost) && !c.invalid()
}

func (c *call) invalid() bool {
	var invalid *backend.InvalidError
	return errors.As(c.err, &invalid)
}

// recorded is a client of the store whose calls are written down.
type recorded struct {
	backend.Backend
	name string
	h    *history
}

func (r *recorded) Unwrap() backend.Backend { return r.Backend }

func (r *recorded) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	c := r.h.begin(r.name, "acquire", want)
	got, err := r.Backend.Acquire(ctx, want)
	r.h.end(c, got, err)
	return got, err
}

func (r *recorded) Renew(ctx context.Context, held backend.Lease) error {
	c := r.h.begin(r.name, "renew", held)
	err := r.Backend.Renew(ctx, held)
	r.h.end(c, backend.Lease{}, err)
	return err
}

func (r *recorded) Release(ctx context.Context, held backend.Lease) error {
	c := r.h.begin(r.name, "release", held)
	err := r.Backend.Release(ctx, held)
	r.h.end(c, backend.Lease{}, err)
	return err
}

// recordedWaiter is the Waiter of a recorded client.
type recordedWaiter struct {
	*recorded
	waiter backend.Waiter
}

func (r recordedWaiter) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	c := r.h.begin(r.name, "wait", want)
	got, err := r.waiter.Wait(ctx, want)
	r.h.end(c, got, err)
	return got, err
}
