package memory

import (
	"container/list"
	"errors"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

type shard struct {
	mu    sync.Mutex
	holds map[string]*hold
	spare *hold // the last one freed, for the next to be granted
}

// hold is a key that is held, and the line of those who wait for it. It passes
// from holder to holder, so that a key with a line is never free.
type hold struct {
	key   string // empty while spare
	owner string
	token backend.Token
	until time.Duration // when the term ends, by Backend.now
	timer *time.Timer
	rings time.Duration // when the timer does: then at the latest; zero if it is not set
	line  list.List     // of *waiter
}

type waiter struct {
	want    backend.Lease
	granted chan backend.Lease // takes one without blocking; closed if there can be none
}

// at returns who holds key now, or nil. A term that has passed has ended, even
// if its timer is late.
func (b *Backend) at(s *shard, key string, now time.Duration) *hold {
	h := s.holds[key]
	if h != nil && now >= h.until {
		h = b.pass(s, h)
	}
	return h
}

// open gives a free key a hold without holder.
func (s *shard) open(key string) *hold {
	h := s.spare
	if h == nil {
		h = new(hold)
	}
	s.spare, s.holds[key], h.key = nil, h, key
	return h
}

// try grants a key that is free or already the owner's.
func (b *Backend) try(s *shard, want backend.Lease) (backend.Lease, error) {
	if want.Start.IsZero() {
		want.Start = time.Now()
	}
	now := b.now()
	switch h := b.at(s, want.Key, now); {
	case h == nil:
		var ok bool
		if want.Token, ok = b.next(want.Token); !ok {
			return backend.Lease{}, errSpent
		}
		b.grant(s, s.open(want.Key), want, now)
		want.First = want.Token
	case h.owner == want.Owner:
		last := h.token
		b.extend(h, want, now)
		want.Token, want.First = h.token, min(last+1, h.token)
	default:
		return backend.Lease{}, backend.ErrHeld
	}
	return want, nil
}

// grant makes want the holder of h. The timer is left as it is if it rings in
// time: so locking and unlocking a key sets none.
func (b *Backend) grant(s *shard, h *hold, want backend.Lease, now time.Duration) {
	h.owner, h.token, h.until = want.Owner, want.Token, now+want.TTL
	switch {
	case h.timer == nil:
		h.timer = time.AfterFunc(want.TTL, func() { b.ring(s, h) })
	case h.rings == 0 || h.rings > h.until:
		h.timer.Reset(want.TTL)
	default:
		return
	}
	h.rings = h.until
}

// extend starts the term of the holder anew, never shortens it, and lifts its
// token to l's.
func (b *Backend) extend(h *hold, l backend.Lease, now time.Duration) {
	h.until = max(h.until, now+l.TTL)
	if l.Token > h.token {
		h.token = l.Token
		b.reach(l.Token)
	}
}

// pass ends a hold: the key goes to the head of the line, else it is free and
// pass returns nil.
func (b *Backend) pass(s *shard, h *hold) *hold {
	for head := h.line.Front(); head != nil; head = h.line.Front() {
		w := h.line.Remove(head).(*waiter)
		token, ok := b.next(w.want.Token)
		if !ok {
			close(w.granted)
			continue
		}
		w.want.Token, w.want.Start = token, time.Now()
		b.grant(s, h, w.want, w.want.Start.Sub(b.born))
		w.granted <- w.want
		return h
	}
	delete(s.holds, h.key)
	h.key, h.owner = "", ""
	if s.spare == nil {
		s.spare = h
	} else {
		h.timer.Stop()
	}
	return nil
}

// ring ends a hold whose term has passed.
func (b *Backend) ring(s *shard, h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.rings = 0
	if h.key == "" {
		return // spare, or released before the timer could be stopped
	}
	if left := h.until - b.now(); left > 0 {
		h.timer.Reset(left)
		h.rings = h.until
		return
	}
	b.pass(s, h)
}

// errSpent: a token too large to be valid is not handed out. Only a floor near
// the end can have led there.
var errSpent = errors.New("no token is left")

// next draws a token, the next one or floor if that is larger; false if there
// is none.
func (b *Backend) next(floor backend.Token) (backend.Token, bool) {
	for {
		last := b.last.Load()
		t := max(last+1, int64(floor))
		if t > int64(backend.MaxToken) {
			return 0, false
		}
		if b.last.CompareAndSwap(last, t) {
			return backend.Token(t), true
		}
	}
}

// reach makes every later token larger than t.
func (b *Backend) reach(t backend.Token) {
	for last := b.last.Load(); last < int64(t) && !b.last.CompareAndSwap(last, int64(t)); {
		last = b.last.Load()
	}
}
