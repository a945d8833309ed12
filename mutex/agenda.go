package mutex

import (
	"container/heap"
	"sync"
	"time"
)

// agenda has the holds of a session in the order in which something is to be
// done about them, and one timer for all.
//
// Most holds end before anything has to be done: then the timer is left as it
// is, and finds nothing to do. So it may ring earlier than the first is due.
type agenda struct {
	mu    sync.Mutex
	holds dues
	timer *time.Timer
	rings time.Time // zero: it is not set
}

// set has h.tick called at an instant, and not at the one that was set before.
func (a *agenda) set(h *Hold, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h.due = at
	if h.place == 0 {
		heap.Push(&a.holds, h)
	} else {
		heap.Fix(&a.holds, h.place-1)
	}
	a.wind()
}

// drop has nothing more done about h, unless that has begun.
func (a *agenda) drop(h *Hold) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h.place > 0 {
		heap.Remove(&a.holds, h.place-1)
	}
}

// wind sets the timer, unless it rings early enough.
func (a *agenda) wind() {
	if len(a.holds) == 0 {
		return
	}
	first := a.holds[0].due
	switch {
	case a.timer == nil:
		a.timer = time.AfterFunc(time.Until(first), a.ring)
	case a.rings.IsZero() || first.Before(a.rings):
		a.timer.Reset(time.Until(first))
	default:
		return
	}
	a.rings = first
}

// ring is what the timer does. It is set again before anything is done, so no
// hold waits for what is done about another.
func (a *agenda) ring() {
	if h := a.first(time.Now()); h != nil {
		h.tick()
	}
}

// first takes the first hold off the agenda, if it is due, and winds the timer
// for the next.
func (a *agenda) first(now time.Time) (h *Hold) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.holds) > 0 && !now.Before(a.holds[0].due) {
		h = heap.Pop(&a.holds).(*Hold)
	}
	a.rings = time.Time{}
	a.wind()
	return h
}

// dues is a heap of holds. The place of each is its index plus one, or zero if
// it is not in the heap.
type dues []*Hold

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].due.Before(d[j].due) }

func (d dues) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i+1, j+1
}

func (d *dues) Push(h any) {
	*d = append(*d, h.(*Hold))
	h.(*Hold).place = len(*d)
}

func (d *dues) Pop() any {
	last := len(*d) - 1
	h := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	h.place = 0
	return h
}
