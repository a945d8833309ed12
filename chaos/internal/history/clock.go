// Package history records what the clients of a lock saw, and judges it: who
// held what from when to when by one clock of the machine, whether two ever held
// one key at once, and whether tokens rose.
package history

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/distmutex/distmutex/chaos/internal/machine"
)

// Clock reads CLOCK_BOOTTIME, which all processes of a machine share, and which
// runs on while a client's machine is suspended. Go's own monotonic readings stand
// still then, and count from a start of their own.
type Clock struct {
	origin time.Time
	base   int64 // of CLOCK_MONOTONIC at the origin
}

// NewClock finds out where the readings of this process begin.
func NewClock() Clock {
	var c Clock
	closest := time.Hour
	for range 100 { // the process may be stopped between any two readings
		before := time.Now()
		now := machine.Read(unix.CLOCK_MONOTONIC)
		if gap := time.Since(before); gap < closest {
			closest, c = gap, Clock{before, now}
		}
	}
	return c
}

// Now is the machine's time in nanoseconds.
func (c Clock) Now() int64 { return machine.Read(unix.CLOCK_BOOTTIME) }

// sleep is longer than an error of asleep, and shorter than any suspension.
const sleep = 10 * time.Millisecond

// Of is the machine's time of an instant that ask tells by the clock of this
// process. It is asked again if the machine slept meanwhile, since nobody knows
// then which side of the sleep is meant.
func (c Clock) Of(ask func() time.Time) int64 {
	for before := asleep(); ; {
		t := ask()
		after := asleep()
		if after-before < int64(sleep) {
			return c.base + int64(t.Sub(c.origin)) + after
		}
		before = after
	}
}

// asleep is for how long the machine has been suspended. The process may lose its
// processor between two readings, so the tightest of some tries counts. Package mutex
// does the like: a judge does not use what it judges.
func asleep() (best int64) {
	narrow := int64(time.Hour)
	for range 20 {
		before := machine.Read(unix.CLOCK_MONOTONIC)
		boot := machine.Read(unix.CLOCK_BOOTTIME)
		width := machine.Read(unix.CLOCK_MONOTONIC) - before
		if width < narrow {
			best, narrow = boot-before-width/2, width
		}
		if narrow < int64(100*time.Microsecond) {
			break
		}
	}
	return best
}
