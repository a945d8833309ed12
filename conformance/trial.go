package conformance

import (
	"context"
	crand "crypto/rand"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
)

const (
	long   = 20 * time.Second       // a term that does not pass while a case runs
	short  = 200 * time.Millisecond // a term that has to pass
	soon   = 3 * time.Second        // what takes longer is not prompt, on the busiest machine
	budget = 60 * time.Second       // no case waits much longer, whatever the backend does
)

// trial is one run of a case: a testing.TB that prints the rule first, two
// clients of the store, and the vocabulary of the cases. What belongs to one
// owner goes through one client, whose calls for it are in order.
type trial struct {
	testing.TB
	check
	b, peer backend.Backend
	ctx     context.Context // ends with the budget, or with the case
	cancel  context.CancelFunc
	key     string         // of this run alone
	waiters sync.WaitGroup // who still uses the trial

	h           Harness
	unfenced    bool
	short, late time.Duration

	history history
	atEnd   []func() // ends the faults and the clients that the case did not come to end

	mu     sync.Mutex
	broken bool            // the rule has been printed
	found  *violation      // what the history shows to be wrong
	owners []string        // all that were drawn
	asked  []backend.Lease // what may have been granted
}

func newTrial(tb testing.TB, h Harness, c check) *trial {
	raw := h.New(tb)
	t := &trial{TB: tb, check: c, key: "conformance:" + c.id + ":" + crand.Text()}
	t.h, t.unfenced, t.short, t.late = h, h.Unfenced, h.Term, h.Late
	t.b = &recorded{raw, "client", &t.history}
	t.peer = t.b
	if h.Peer != nil {
		t.peer = &recorded{h.Peer(tb, raw), "peer", &t.history}
	}
	t.ctx, t.cancel = context.WithTimeout(tb.Context(), budget+100*t.short)
	return t
}

// randomly is the random numbers of one goroutine of a random case.
func (t *trial) randomly(goroutine int) *rand.Rand {
	id := fnv.New64a()
	id.Write([]byte(t.id))
	return rand.New(rand.NewPCG(t.h.Seed, id.Sum64()+uint64(goroutine)))
}

func (t *trial) Errorf(format string, args ...any) {
	t.Helper()
	t.announce()
	t.TB.Errorf(format, args...)
}

func (t *trial) Fatalf(format string, args ...any) {
	t.Helper()
	t.announce()
	t.TB.Fatalf(format, args...)
}

func (t *trial) announce() {
	t.Helper()
	t.mu.Lock()
	first := !t.broken
	t.broken = true
	t.mu.Unlock()
	if first {
		t.TB.Errorf("broken rule %s: %s\npart of law %d, %s; seed %d", t.id, t.rule, t.law, laws[t.law-1].name, t.h.Seed)
	}
}

// tidy ends what still waits, and releases whatever the case may have left on a
// shared server.
func (t *trial) tidy() {
	for _, end := range slices.Backward(t.atEnd) {
		end()
	}
	t.cancel()
	t.waiters.Wait()
	if t.broken {
		t.show()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), soon)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.asked {
		_ = t.b.Release(ctx, l)
	}
}

func (t *trial) note(l backend.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = append(t.asked, l)
}

// waiter is the Waiter of a client, nil if it has none.
func (t *trial) waiter(b backend.Backend) backend.Waiter {
	w, ok := backend.As[backend.Waiter](b)
	if r, is := b.(*recorded); is && ok {
		return recordedWaiter{r, w}
	}
	return w
}

// raw is what the harness made.
func raw(b backend.Backend) backend.Backend { return b.(*recorded).Backend }

// lease is a new attempt at the key of the trial.
func (t *trial) lease(ttl time.Duration) backend.Lease {
	owner := crand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners = append(t.owners, owner)
	return backend.Lease{Key: t.key, Owner: owner, TTL: ttl, Start: time.Now()}
}
