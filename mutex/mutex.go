package mutex

import (
	"context"
	"errors"

	"github.com/distmutex/distmutex/backend"
)

// Mutex is a lock as a program depends on it: what it takes as a parameter, and
// what tests replace.
type Mutex interface {
	// Lock waits until the lock is held. ctx bounds the wait, not the hold:
	// cancelling it after Lock has returned changes nothing.
	Lock(ctx context.Context) error

	// TryLock makes one attempt, and returns ErrHeld at once if another holds
	// the lock.
	TryLock(ctx context.Context) error

	// Unlock releases the lock. It returns nil when that is confirmed, ErrLost
	// if the lock was lost before, and ErrNotLocked if it was not locked.
	Unlock(ctx context.Context) error
}

// Leased is the Mutex of one key in a Session. Its methods may be called at the
// same time. Any goroutine may unlock it, as with sync.Mutex.
type Leased struct {
	_   noCopy
	s   *Session
	key string
}

// noCopy makes go vet notice a Leased that is copied.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// New makes the mutex of one key, in a session of its own. A bad key or bad
// options are a *backend.InvalidError. While it is unlocked nothing of it runs,
// but for a release that was not confirmed, which ends within a TTL, and a timer
// that rings within a TTL and finds nothing to do.
func New(b backend.Backend, key string, o *Options) (*Leased, error) {
	if err := backend.ValidateKey(key); err != nil {
		return nil, err
	}
	s, err := NewSession(b, o)
	if err != nil {
		return nil, err
	}
	return s.Mutex(key), nil
}

// Key is what the mutex locks.
func (l *Leased) Key() string { return l.key }

// Lock waits until the lock is held, first come, first served among the
// goroutines of the session, and as the backend orders it among processes.
//
// When ctx ends it returns promptly, with an error that is ctx.Err(), and ErrHeld
// too if another was seen to hold the lock. When the outcome of an attempt is
// unknown, it returns that error at once; retry.Middleware makes the backend try
// again. In all these cases what may have been got is released in the background.
func (l *Leased) Lock(ctx context.Context) error {
	_, err := l.s.lock(ctx, l.key, false, true)
	return err
}

// TryLock makes one attempt, and returns ErrHeld at once if another holds the
// lock, in this session or elsewhere. Otherwise it is as Lock.
func (l *Leased) TryLock(ctx context.Context) error {
	_, err := l.s.lock(ctx, l.key, true, true)
	return err
}

// Unlock unlocks what Lock or TryLock locked, as Hold.Unlock does. It returns
// ErrNotLocked if there is nothing to unlock. If its outcome is unknown, the
// lock can be locked again by this session, and Unlock can be repeated until it
// is.
func (l *Leased) Unlock(ctx context.Context) error {
	h := l.s.claim(l.key)
	if h == nil {
		return named("unlock", l.key, ErrNotLocked)
	}
	err := h.Unlock(ctx)
	if err != nil {
		l.s.unclaim(h)
	}
	return err
}

// Hold is Lock that returns a handle: one critical section, which only
// Hold.Unlock ends.
func (l *Leased) Hold(ctx context.Context) (*Hold, error) {
	return l.s.lock(ctx, l.key, false, false)
}

// TryHold is TryLock that returns a handle.
func (l *Leased) TryHold(ctx context.Context) (*Hold, error) {
	return l.s.lock(ctx, l.key, true, false)
}

// Current returns the hold that Lock or TryLock began, for its token and its
// loss; nil if it is not locked, or by Hold or Do. The next Lock begins another
// one, so it is for the goroutine that holds the lock.
func (l *Leased) Current() *Hold { return l.s.current(l.key) }

// Do calls f while the lock is held. The context of f ends when ctx does, and
// when the hold is lost, with the *LostError as its cause; it carries the token,
// for fencing.FromContext. The lock is unlocked even if f panics.
//
// Do returns the error of Lock, or else those of f and Unlock: ErrLost too if the
// hold was lost, whatever f returned.
func (l *Leased) Do(ctx context.Context, f func(ctx context.Context) error) (err error) {
	h, err := l.Hold(ctx)
	if err != nil {
		return err
	}
	hctx, cancel := h.Context(ctx)
	defer func() {
		cancel()
		switch unlock := h.Unlock(ctx); {
		case unlock == nil:
		case err == nil:
			err = unlock
		case !errors.Is(err, unlock):
			err = errors.Join(err, unlock)
		}
	}()
	return f(hctx)
}
