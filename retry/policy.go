// Package retry paces repeated attempts, and repeats the calls of a backend
// whose outcome is unknown.
//
// A [Policy] makes the back-offs of github.com/cenkalti/backoff/v4. Those of
// this package never sleep longer than their maximum and never stop by
// themselves: how long to try is for a context, a lease's term or [Limit] to
// say.
package retry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Policy makes a new back-off for each series of attempts. A BackOff has state
// and belongs to one goroutine; the Policies of this package hold none and may
// be shared by any number.
//
// From any Policy, backoff.Stop means: give up.
type Policy func() backoff.BackOff

// Constant waits d each time. It panics if d is not positive.
//
// Contenders that wait equally long meet again: FullJitter parts them.
func Constant(d time.Duration) Policy {
	check("Constant", d, d)
	return func() backoff.BackOff { return backoff.NewConstantBackOff(d) }
}

// Exponential waits initial, then twice as long each time, up to longest. It
// panics unless 0 < initial ≤ longest.
func Exponential(initial, longest time.Duration) Policy {
	check("Exponential", initial, longest)
	return func() backoff.BackOff {
		return backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(initial),
			backoff.WithMaxInterval(longest),
			backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0), // it would exceed longest
			backoff.WithMaxElapsedTime(0),      // it would stop
		)
	}
}

// FullJitter waits a random time of at most what Exponential would wait. It
// panics unless 0 < base ≤ longest. It is a good choice for contenders that do
// not know of each other (M. Brooker, "Exponential Backoff And Jitter", AWS
// Architecture Blog, 2015).
func FullJitter(base, longest time.Duration) Policy {
	check("FullJitter", base, longest)
	exponential := Exponential(base, longest)
	return func() backoff.BackOff { return &fullJitter{exponential()} }
}

// Decorrelated waits a random time between base and three times the wait
// before, at most longest: the "decorrelated jitter" of the same article. It
// panics unless 0 < base ≤ longest.
func Decorrelated(base, longest time.Duration) Policy {
	check("Decorrelated", base, longest)
	return func() backoff.BackOff { return &decorrelated{base, longest, base} }
}

// Limit gives up after n waits of p, that is after n+1 attempts. It panics if p
// is nil or n is negative.
func Limit(p Policy, n int) Policy {
	if p == nil || n < 0 {
		panic(fmt.Sprintf("retry: Limit of %d waits, or of a nil Policy", n))
	}
	return func() backoff.BackOff { return backoff.WithMaxRetries(p(), uint64(n)) }
}

func check(name string, shortest, longest time.Duration) {
	if shortest <= 0 || longest < shortest {
		panic(fmt.Sprintf("retry: %s from %v to %v: want 0 < shortest ≤ longest", name, shortest, longest))
	}
}

type fullJitter struct{ backoff.BackOff }

func (j *fullJitter) NextBackOff() time.Duration { return upTo(1, j.BackOff.NextBackOff()) }

type decorrelated struct{ base, longest, last time.Duration }

func (d *decorrelated) Reset() { d.last = d.base }

func (d *decorrelated) NextBackOff() time.Duration {
	triple := 3 * min(d.last, math.MaxInt64/3)
	d.last = min(d.longest, upTo(d.base, triple))
	return d.last
}

// upTo draws from lo to hi, both included.
func upTo(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(rand.Uint64N(uint64(hi-lo)+1))
}
