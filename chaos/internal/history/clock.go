// Package history records what the clients of a lock saw, and judges it: who
// held what from when to when by one clock of the machine, whether two ever held
// one key at once, and whether tokens rose.
package history

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock reads CLOCK_MONOTONIC, which all processes of a machine share. Go's own
// monotonic readings are the same clock, counted from a start of its own.
type Clock struct {
	origin time.Time
	base   int64
}

// NewClock finds out where the readings of this process begin.
func NewClock() Clock {
	var c Clock
	closest := time.Hour
	for range 100 { // the process may be stopped between any two readings
		before := time.Now()
		now := monotonic()
		if gap := time.Since(before); gap < closest {
			closest, c = gap, Clock{before, now}
		}
	}
	return c
}

func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// Now is the machine's time in nanoseconds.
func (c Clock) Now() int64 { return c.At(time.Now()) }

// At is the machine's time of an instant of this process.
func (c Clock) At(t time.Time) int64 { return c.base + int64(t.Sub(c.origin)) }
