package mutex

import (
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/retry"
)

// Options sets how locks are held and waited for. Nil, and zero in any field,
// mean a good default.
type Options struct {
	// TTL is the term of a lease: how long a key stays locked after its holder
	// died. Whole milliseconds, backend.MinTTL to backend.MaxTTL or what the
	// backend allows. Default 10 s.
	TTL time.Duration

	// MaxHold bounds a hold, however well its renewals go, so that a holder
	// that hangs does not hang everybody. At least TTL. Default 1 h, or TTL if
	// that is more.
	MaxHold time.Duration

	// MinHold keeps the key locked for at least this long, counted from the
	// moment Lock returned, or, if it is more than seven eighths of TTL, to the end
	// of the term. An earlier Unlock returns at once and lets the next
	// goroutine of this session try; the key is released later. At most TTL.
	// Default 0.
	//
	// It is for jobs that several hosts start by their own clocks: a job that
	// takes less time than the clocks differ would run on each of them. Close
	// leaves a key whose time has not come to the end of its term.
	MinHold time.Duration

	// RenewEvery is how long after a term began the next one is asked for, less
	// up to a tenth at random. At least 1 ms and less than the validity of a
	// term. Default: a third of the validity. Negative: never renew, so that a
	// hold lasts one term at most.
	RenewEvery time.Duration

	// HandOver is how long goroutines of this session may pass one lease among
	// themselves, each with a token of its own, before they release it: without
	// a call of the backend for every turn. It bounds what others wait for
	// besides one hold. Default 20 ms. Negative: they never do; nor do they where
	// MinHold is set.
	HandOver time.Duration

	// Linger is how long an Unlock that finds nobody of this session waiting keeps
	// the lease for who comes next, but not past HandOver: the next Lock or TryLock
	// of the session then has it without a call of the backend. Until it is
	// released, in the background, others find the key held; if the process dies
	// before, they do to the end of the term. At most HandOver, and not together
	// with MinHold. Default 0: Unlock releases the lease.
	//
	// It is for a key that one process locks again and again while others want it
	// now and then.
	Linger time.Duration

	// Wait paces the attempts of a Lock that finds the key held, where the
	// backend does not offer a better way of waiting or that way fails. When it
	// says stop, Lock returns ErrHeld. Default: full jitter, growing from 5 ms
	// to 250 ms, for as long as Lock's context lasts.
	Wait retry.Policy

	// Report is told what the Unlock of a Locker can't return: that the hold
	// was lost, or that its release was not confirmed. Default: slog.Error.
	Report func(key string, err error)
}

var defaultWait = retry.FullJitter(5*time.Millisecond, 250*time.Millisecond)

// complete returns a copy with defaults, or an *InvalidError.
func (o *Options) complete() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.TTL == 0 {
		c.TTL = 10 * time.Second
	}
	if err := backend.ValidateTTL(c.TTL); err != nil {
		return c, err
	}
	if c.MaxHold == 0 {
		c.MaxHold = max(time.Hour, c.TTL)
	}
	if c.HandOver == 0 {
		c.HandOver = 20 * time.Millisecond
	}
	if c.Wait == nil {
		c.Wait = defaultWait
	}
	if c.Report == nil {
		c.Report = func(key string, err error) { slog.Error("unlock", "key", key, "error", err) }
	}
	return c, c.check()
}

func (o *Options) check() error {
	validity := o.TTL - backend.Drift(o.TTL)
	switch {
	case o.MaxHold < o.TTL:
		return invalid("MaxHold", "is %v, less than TTL, %v", o.MaxHold, o.TTL)
	case o.MinHold < 0:
		return invalid("MinHold", "is %v, negative", o.MinHold)
	case o.MinHold > o.TTL:
		return invalid("MinHold", "is %v, more than TTL, %v", o.MinHold, o.TTL)
	case o.Linger < 0:
		return invalid("Linger", "is %v, negative", o.Linger)
	case o.Linger > max(o.HandOver, 0):
		return invalid("Linger", "is %v, more than HandOver, %v", o.Linger, o.HandOver)
	case o.Linger > 0 && o.MinHold > 0:
		return invalid("Linger", "is %v, but MinHold lets no lease be passed on", o.Linger)
	case o.RenewEvery > 0 && o.RenewEvery < time.Millisecond:
		return invalid("RenewEvery", "is %v, less than %v", o.RenewEvery, time.Millisecond)
	case o.RenewEvery >= validity:
		return invalid("RenewEvery", "is %v, not less than the validity of a term, %v", o.RenewEvery, validity)
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return &backend.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// isNil also finds the nil pointer that was put into an interface.
func isNil(b backend.Backend) bool {
	if b == nil {
		return true
	}
	v := reflect.ValueOf(b)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
