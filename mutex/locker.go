package mutex

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/distmutex/distmutex/retry"
)

// TryLocker is a sync.Locker that can also try.
type TryLocker interface {
	sync.Locker
	TryLock() bool
}

// Locker makes a sync.Locker of m, for code that was written for sync.Mutex.
// All calls use ctx.
//
// A Locker can't return an error. Misuse panics, as with sync.Mutex: an Unlock of
// what is not locked, a bad key, a closed session. So does Lock when ctx ends.
// The faults of the world do not: Lock goes on trying through an outage until ctx
// ends, TryLock says false, and an Unlock that finds the lock lost, or is not
// confirmed, tells Options.Report if m is a *Leased, and else slog.
//
// A loss goes unnoticed until Unlock. Code that has to know earlier uses Do.
//
// A sync.Cond over it wakes goroutines of this process only.
func Locker(ctx context.Context, m Mutex) TryLocker { return &locker{ctx, m} }

type locker struct {
	ctx context.Context
	m   Mutex
}

var outage = retry.FullJitter(20*time.Millisecond, time.Second)

func (l *locker) Lock() {
	pace := outage()
	for {
		err := l.m.Lock(l.ctx)
		if err == nil {
			return
		}
		if misused(err) || !sleep(l.ctx, pace.NextBackOff()) {
			panic(fmt.Errorf("mutex: Lock of a Locker: %w", err))
		}
	}
}

func (l *locker) TryLock() bool {
	err := l.m.TryLock(l.ctx)
	if misused(err) {
		panic(fmt.Errorf("mutex: TryLock of a Locker: %w", err))
	}
	return err == nil
}

func (l *locker) Unlock() {
	err := l.m.Unlock(l.ctx)
	switch {
	case err == nil:
	case errors.Is(err, ErrNotLocked) || misused(err):
		panic(fmt.Errorf("mutex: Unlock of a Locker: %w", err))
	default:
		l.report(err)
	}
}

func (l *locker) report(err error) {
	if m, ok := l.m.(*Leased); ok {
		m.s.o.Report(m.key, err)
	} else {
		slog.Error("unlock", "error", err)
	}
}

// misused says whether an error will be the same for ever.
func misused(err error) bool { return errors.Is(err, ErrClosed) || isInvalid(err) }
