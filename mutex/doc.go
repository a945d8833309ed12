// Package mutex is a mutual exclusion lock for many processes.
//
// A [Mutex] has Lock, TryLock and Unlock, each with a context. [New] makes one
// from any backend.Backend:
//
//	m, err := mutex.New(memory.New(nil), "report", nil)
//	...
//	if err := m.Lock(ctx); err != nil {
//		return err
//	}
//	defer m.Unlock(ctx)
//
// # Holds end
//
// What Lock gets is a lease: it is held for a term ([Options].TTL), renewed in
// the background, and lost if it can't be, so that a process that died or was
// cut off blocks nobody for long. A hold can therefore end before Unlock. The
// shortest way to take that into account is [Leased.Do], whose context ends
// when the hold does:
//
//	err := m.Do(ctx, func(ctx context.Context) error {
//		return write(ctx, row) // stops when the lock is lost; carries its token
//	})
//
// [Leased.Hold] gives the same as a handle. [Hold.Until] is how long the holder
// may rely on it, counted by the clock of this machine from before the request
// was sent, less an allowance for drift; [Hold.Lost] and the contexts of the
// hold end about a millisecond before. Both do so though no server answers.
//
// No signal reaches a process that is paused between a check and a write. A
// resource is safe from that only if it refuses stale tokens: see package
// fencing.
//
// # Errors
//
// Errors are told apart with errors.Is. [ErrHeld]: another holds the lock.
// [ErrLost]: it was ours, and is not any more; a [*LostError] has the reason.
// ctx.Err(): the context ended while Lock waited; where another held the lock,
// the error is ErrHeld too. [ErrNotLocked] and [ErrClosed] are misuse, and a
// *backend.InvalidError is bad input. After any other error the outcome is
// unknown: Lock holds nothing then and gives back what it may have got; a
// failed Unlock can be repeated.
//
// # Sessions
//
// A [Session] is what one process holds through one backend: mutexes for any
// number of keys, one Close for all. Within a session, goroutines that lock one
// key exclude each other first come, first served and unconditionally: even
// when the lease is lost, the next one waits until the holder has unlocked. Two
// sessions are strangers to each other, and New makes a session of its own.
//
// Locks are not reentrant. A hold takes no goroutine while nothing is to be
// done, and a key no memory while nobody uses it.
package mutex
