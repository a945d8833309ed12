package conformance

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// history is what many holders of one key saw. Its moments are the places in
// one sequence of events, which orders them even where a clock does not.
type history struct {
	mu       sync.Mutex
	events   int
	holds    []*hold
	unfenced bool
}

type hold struct {
	lease       backend.Lease
	asked, told int       // before the call, after the answer
	gave        int       // before the release; zero if there was none
	at          time.Time // of told
}

func (h *history) event() int {
	h.events++
	return h.events
}

// ask begins an attempt.
func (h *history) ask() *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &hold{asked: h.event()}
}

// told says that the attempt was granted. A grant that comes after the end of
// its validity is no hold.
func (h *history) told(a *hold, got backend.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.lease, a.told, a.at = got, h.event(), time.Now()
	if a.at.Before(got.Until()) {
		h.holds = append(h.holds, a)
	}
}

// gave says that the release begins.
func (h *history) gave(a *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.gave = h.event()
}

// judge compares all holds, in the order in which they were told, two by two.
func (h *history) judge(t *trial) {
	t.Helper()
	slices.SortFunc(h.holds, func(a, b *hold) int { return cmp.Compare(a.told, b.told) })
	for i, a := range h.holds {
		for _, b := range h.holds[i+1:] {
			ta, tb := a.lease.Token, b.lease.Token
			released := a.gave > 0 && a.gave < b.told
			switch {
			case !released && b.at.Before(a.lease.Until()):
				t.Fatalf("two held the key at once: one with token %d, the other with %d", ta, tb)
			case h.unfenced:
			case ta == tb:
				t.Fatalf("two holds share the token %d", ta)
			case (released || a.told < b.asked) && ta > tb:
				t.Fatalf("the token went back: %d, and in a later hold %d", ta, tb)
			}
		}
	}
}
