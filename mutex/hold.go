package mutex

import (
	"context"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
)

// Hold is one critical section: a lock that was got and is to be unlocked. Its
// methods may be called at the same time, and still after its end.
type Hold struct {
	s     *Session
	key   string
	gate  *gate // until it is forgotten
	token backend.Token
	link  context.Context // for the observer; nil without one
	since time.Time       // when the caller was told
	limit time.Time       // where MaxHold ends

	forgotten bool // under Session.mu: no Unlock of a Leased leads here any more

	due   time.Time // in the session's agenda, which guards both
	place int

	mu    sync.Mutex
	term  term
	turns turns
	lost  chan struct{}                               // made when somebody asks for it
	ctxs  map[context.Context]context.CancelCauseFunc // likewise

	// How it ended.
	over     bool // lost, unlocked or closed
	final    bool // nothing can change the reason any more
	shut     bool // lost is closed, or will be when it is made
	reported bool // the observer was told
	ended    time.Time
	err      *LostError // if it was lost

	// Renewal.
	renewAt time.Time          // zero: no more
	draws   int32              // random times drawn so far
	misses  int32              // how many failed in a row
	miss    error              // the last one
	abort   context.CancelFunc // of the one under way
	queued  bool               // waiting for its turn

	// For one owner, the next call of the backend begins when the last returned.
	busy bool
	free chan struct{} // made by who waits for that

	// Release.
	call    callCtx // of the first Unlock
	given   bool    // Unlock was called
	settled bool    // result is what every further Unlock returns
	unsure  bool    // the outcome of Unlock is unknown: it can be repeated
	owed    bool    // the lease is still to be released
	parked  bool    // the agenda will have it done, when MinHold has passed
	result  error
}

// Key is what is locked.
func (h *Hold) Key() string { return h.key }

// Token orders the holds of a key: a later one has a larger token. Zero means
// that the backend does not fence.
func (h *Hold) Token() backend.Token { return h.token }

// Until is the end of the hold's validity: the holder may rely on it before,
// and not after. Renewals move it on, up to the end of Options.MaxHold. Once the
// hold has ended, it is when that was.
func (h *Hold) Until() time.Time {
	h.mu.Lock()
	defer h.leave()
	valid := h.expire(time.Now())
	if h.over {
		return h.ended
	}
	return h.within(valid)
}

// Err is nil while the hold lasts, and after an Unlock in time; once it was
// lost, it is a *LostError, which is ErrLost.
func (h *Hold) Err() error {
	h.mu.Lock()
	defer h.leave()
	h.expire(time.Now())
	if h.err == nil {
		return nil
	}
	return h.err
}

// Lost returns a channel that is closed when the hold is lost, about a
// millisecond before Until. It is not closed by Unlock.
func (h *Hold) Lost() <-chan struct{} {
	h.mu.Lock()
	defer h.leave()
	h.expire(time.Now())
	if h.lost == nil {
		h.lost = make(chan struct{})
		if h.shut {
			close(h.lost)
		}
	}
	return h.lost
}

// Context returns a copy of ctx that ends with the hold: if it is lost, with the
// *LostError as its cause, and with context.Canceled when it is unlocked. It
// carries the token, for fencing.FromContext. Call cancel when it is not needed
// any more; the hold goes on.
func (h *Hold) Context(ctx context.Context) (hctx context.Context, cancel context.CancelFunc) {
	hctx, end := context.WithCancelCause(fencing.NewContext(ctx, h.token))
	h.mu.Lock()
	defer h.leave()
	h.expire(time.Now())
	if h.over {
		end(h.cause())
		return hctx, func() {}
	}
	if h.ctxs == nil {
		h.ctxs = make(map[context.Context]context.CancelCauseFunc)
	}
	h.ctxs[hctx] = end
	return hctx, func() {
		h.mu.Lock()
		delete(h.ctxs, hctx)
		h.mu.Unlock()
		end(nil)
	}
}

// cause is why the contexts end.
func (h *Hold) cause() error {
	if h.err == nil {
		return context.Canceled
	}
	return h.err
}

// within is the end of the hold, if nothing more is renewed and its lease is
// valid until then.
func (h *Hold) within(valid time.Time) time.Time {
	if valid.After(h.limit) {
		return h.limit
	}
	return valid
}

// expire ends the hold if its time is over, and returns the end of its lease's
// validity as of now. The agenda has the same done, but a machine that slept may
// be back before its timers.
func (h *Hold) expire(now time.Time) (valid time.Time) {
	valid = h.term.until(now, h.s.meter)
	if end := h.within(valid); !h.over && !now.Before(end.Add(-lead)) {
		h.expired(now, end)
	}
	return valid
}

// expired ends the hold, whose end has come.
func (h *Hold) expired(now, end time.Time) {
	if now.After(end) {
		now = end // noticed late
	}
	if end.Equal(h.limit) {
		h.lose(now, MaxHold, nil)
	} else {
		h.lose(now, Expired, h.miss)
	}
}

// lose marks the hold as lost; leave tells.
func (h *Hold) lose(now time.Time, why Reason, cause error) {
	if h.over {
		return
	}
	h.err = &LostError{Key: h.key, Reason: why, Err: cause}
	h.final = true
	if why == Taken {
		h.owed = false
	}
	h.finish(now)
}

// finish marks the hold as over: nothing new is sent but its release.
func (h *Hold) finish(now time.Time) {
	h.over, h.ended = true, now
	h.renewAt = time.Time{}
	h.s.agenda.drop(h)
	if h.abort != nil {
		h.abort()
	}
}

// leave unlocks mu. If the hold ended meanwhile, it tells the contexts and Lost
// first, and then the observer, who may take his time.
func (h *Hold) leave() {
	if h.over {
		for _, end := range h.ctxs {
			end(h.cause())
		}
		h.ctxs = nil
	}
	if h.err != nil && !h.shut {
		h.shut = true
		if h.lost != nil {
			close(h.lost)
		}
	}
	report := h.final && !h.reported
	h.reported = h.reported || report
	h.mu.Unlock()
	if report {
		h.report()
	}
}

// report tells the observer of the end.
func (h *Hold) report() {
	e := h.event(OpEnded)
	e.Held, e.Why = h.ended.Sub(h.since), Unlocked
	var err error
	if h.err != nil {
		e.Why, err = h.err.Reason, h.err
	}
	h.s.happened(h.base(), e, err)
}

func (h *Hold) event(op Op) Event {
	return Event{Op: op, Key: h.key, Token: h.token, Link: h.link}
}

// base is the context of what the hold does by itself.
func (h *Hold) base() context.Context {
	if h.link == nil {
		return context.Background()
	}
	return h.link
}
