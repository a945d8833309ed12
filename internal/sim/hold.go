package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/mutex"
)

// hold is one critical section as its holder saw it. Goroutines of one client may
// hold one lease one after the other.
type hold struct {
	*attempt
	w      *world
	token  backend.Token
	asked  time.Duration // when nobody had been told of it for certain
	told   time.Duration // when the holder had it
	ended  time.Duration // when it unlocked, was told of the loss, or died
	lostAt time.Duration // when its context ended by itself
	limit  time.Duration // by MaxHold
	kept   time.Duration // by MinHold, if it was unlocked in time
	good   bool          // its term had not ended when it was unlocked
}

// begin notes that the client has a lock now, with this token.
func (l *ledger) begin(c *client, key int, token backend.Token) *hold {
	l.mu.Lock()
	a := l.grantOf(c.id, key, token)
	if a == nil {
		l.mu.Unlock()
		l.breach(Truth, "client %d was given lock %d with token %d, which nobody granted it", c.id, key, token)
		l.mu.Lock()
		a = &attempt{owner: owner{c.id, key, 0}, first: token, token: token}
	}
	h := &hold{attempt: a, w: l.w, token: token, asked: a.asked, told: l.w.now(), limit: a.start + c.maxHold()}
	if a.last != nil { // its lease was left to this one
		h.limit = h.told + c.maxHold()
		if l.w.plan.Excludes() { // else another may have come between
			h.asked = a.last.ended
		}
		l.turns++
	}
	h.ended = h.told
	a.last = h
	l.holds = append(l.holds, h)
	l.record("holds", c.id, -1, opApp, a.owner, int(token), "holds "+a.owner.String())
	over := h.told >= min(a.until, h.limit) && !l.w.wasStopped(c.id, a.start, h.told)
	l.mu.Unlock()
	if over {
		l.breach(Truth, "%v was given when its validity was over", a.owner)
	}
	return h
}

// grantOf is the attempt that was granted the token; l.mu is held.
func (l *ledger) grantOf(client, key int, token backend.Token) *attempt {
	for _, a := range l.attempts {
		if a.client == client && a.key == key && a.first <= token && token <= a.token {
			return a
		}
	}
	return nil
}

// validity is the end of the hold's validity, as the answers of the quorum have it.
func (h *hold) validity() time.Duration {
	h.w.log.mu.Lock()
	defer h.w.log.mu.Unlock()
	return min(h.until, h.limit)
}

// check asks the hold whether it lasts, and says so. It must not last longer, nor
// say so, than its validity does.
func (h *hold) check(m *mutex.Hold, ctx context.Context) bool {
	now := h.w.now()
	lasts := m.Err() == nil
	until := m.Until().Sub(h.w.begun)
	valid := h.validity()
	switch {
	case lasts && now > valid:
		h.w.log.breach(Told, "%v ended at %v, and its holder is not told", h.owner, short(valid))
	case lasts && until > valid:
		h.w.log.breach(Validity, "%v is said to last until %v, and does until %v", h.owner, short(until), short(valid))
	}
	return lasts && ctx.Err() == nil
}

// lost is called when the hold's context ends by itself.
func (h *hold) lost() {
	now := h.w.now()
	h.w.log.mu.Lock()
	h.lostAt = now
	valid := min(h.alarm, h.limit) // no timer runs while a machine sleeps
	h.w.log.mu.Unlock()
	due := max(valid, h.told+ms/10) // it may be over when it is told of
	if wake := h.w.goesOn(h.client, h.told); wake > h.told {
		due = max(due, wake+ms) // by a call that was stopped on its way back
	}
	if now > due {
		h.w.log.breach(Told, "%v ended at %v, and its holder was told at %v", h.owner, short(valid), short(now))
	}
}

// end notes that the holder is about to unlock, or has ended. Until is what the
// hold says.
func (h *hold) end(until time.Time, lasts bool) {
	now := h.w.now()
	valid := h.validity()
	h.w.log.mu.Lock()
	h.ended = min(now, until.Sub(h.w.begun), h.w.death(h.client))
	if h.lostAt > 0 {
		h.ended = min(h.ended, h.lostAt)
	}
	h.good = lasts && now < valid
	h.w.log.mu.Unlock()
	h.w.log.event("client", h.client, "ends "+h.owner.String())
}

// unlocked judges the answer to Unlock.
func (h *hold) unlocked(err error, kept time.Duration) {
	switch {
	case err == nil && !h.good:
		h.w.log.breach(Truth, "%v was unlocked without an error after its end", h.owner)
	case err == nil && !h.w.wasStopped(h.client, h.start, h.told): // else some of it had gone
		h.keep(kept)
	case errors.Is(err, mutex.ErrNotLocked):
		h.w.log.breach(Truth, "%v is said not to be locked", h.owner)
	}
}

// keep notes how long the key is to be kept, from when the lock was had.
func (h *hold) keep(d time.Duration) {
	h.w.log.mu.Lock()
	defer h.w.log.mu.Unlock()
	h.kept = d - h.w.clients[h.client].slept(h.told)
}

// resource is what a lock protects. It takes no token smaller than the largest it
// has seen, and remembers who wrote.
type resource struct {
	w       *world
	mu      sync.Mutex
	gate    fencing.Gate
	writers []*hold
}

// write is one use of the resource by a holder, which may be one no more.
func (r *resource) write(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.w.log
	err := r.gate.Do(h.token, func() error {
		for _, other := range r.writers {
			switch {
			case other != h && other.token == h.token:
				l.breach(Fence, "%v and %v write with one token", other, h)
			case other != h && h.told < other.asked:
				l.breach(Fence, "%v writes after %v", h, other)
			}
		}
		if len(r.writers) == 0 || r.writers[len(r.writers)-1] != h {
			r.writers = append(r.writers, h)
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if err != nil {
		l.stale++
	}
	l.record("writes", h.client, -1, opApp, h.owner, word(err), "writes, "+map[bool]string{true: "taken", false: "refused"}[err == nil])
}
