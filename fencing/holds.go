package fencing

import (
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// holds remembers the tokens of the holds of this process while they are valid.
type holds struct {
	mu sync.Mutex
	m  map[holdID]*hold
}

type holdID struct{ key, owner string }

type hold struct {
	token Token
	until time.Time   // nobody else has had the key before
	timer *time.Timer // rings then, or earlier if until has moved on
}

// known returns the token of a hold that the backend has just confirmed for the
// term of l. It says false if the validity that was known of is over: then the
// backend may have granted the key anew, after another's hold.
func (hs *holds) known(l backend.Lease) (Token, bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.m[holdID{l.Key, l.Owner}]
	if h == nil || !time.Now().Before(h.until) {
		return 0, false
	}
	if until := l.Until(); until.After(h.until) {
		h.until = until
	}
	return h.token, true
}

// keep remembers l's token until the end of its validity. It says false if that
// is over.
func (hs *holds) keep(l backend.Lease) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	now, until, id := time.Now(), l.Until(), holdID{l.Key, l.Owner}
	if !now.Before(until) {
		return false
	}
	h := hs.m[id]
	if h == nil {
		h = &hold{until: until}
		h.timer = time.AfterFunc(until.Sub(now), func() { hs.ring(id, h) })
		if hs.m == nil {
			hs.m = make(map[holdID]*hold)
		}
		hs.m[id] = h
	}
	h.token = l.Token
	if until.After(h.until) {
		h.until = until
	}
	return true
}

func (hs *holds) ring(id holdID, h *hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	switch left := time.Until(h.until); {
	case hs.m[id] != h: // forgotten before this timer could be stopped
	case left > 0:
		h.timer.Reset(left)
	default:
		delete(hs.m, id)
	}
}

func (hs *holds) forget(l backend.Lease) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	id := holdID{l.Key, l.Owner}
	if h := hs.m[id]; h != nil {
		h.timer.Stop()
		delete(hs.m, id)
	}
}
