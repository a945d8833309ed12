package mutex

import (
	"sync"
	"time"
)

// noticed is the shortest sleep of the machine that counts. The rounding in
// backend.Drift covers shorter ones.
const noticed = time.Millisecond

// sleepMeter tells how long this machine has been suspended. Go's monotonic
// clock, which all timers and durations go by, stands still meanwhile, but a
// lease on a server runs on.
//
// Only differences between its answers mean anything.
type sleepMeter struct {
	base time.Time
	read func(ahead time.Duration) time.Duration

	mu    sync.Mutex
	known bool
	ahead time.Duration // of the wall clock before the monotonic one, since base
	slept time.Duration // as read then
}

func newSleepMeter() *sleepMeter { return &sleepMeter{base: time.Now(), read: suspended} }

// at returns the time slept until now, which must be fresh from time.Now.
//
// To ask the system costs a few calls of it. But a sleep puts the wall clock
// ahead of the monotonic one, and so does nothing else but setting it: both
// slew alike. So the system is asked only when that distance has changed.
func (m *sleepMeter) at(now time.Time) time.Duration {
	return m.with(now.Round(0).Sub(m.base.Round(0)) - now.Sub(m.base))
}

// with is at, given how far the wall clock is ahead.
func (m *sleepMeter) with(ahead time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if moved := ahead - m.ahead; !m.known || moved <= -noticed || moved >= noticed {
		m.ahead, m.known = ahead, true
		m.slept = m.read(ahead)
	}
	return m.slept
}

// sleptBetween estimates the time slept between two instants by their wall
// clocks, for want of a reading of the meter at the first.
func sleptBetween(from, to time.Time) time.Duration {
	if d := to.Round(0).Sub(from.Round(0)) - to.Sub(from); d >= noticed {
		return d
	}
	return 0
}
