package mutex

import (
	"testing"
	"time"
)

func TestSystemIsAskedWhenTheWallClockMovedAway(t *testing.T) {
	var slept time.Duration
	asked := 0
	m := &sleepMeter{read: func(time.Duration) time.Duration {
		asked++
		return slept
	}}
	for _, c := range []struct {
		ahead, slept, want time.Duration
		asked              int
	}{
		{0, 5, 5, 1},
		{noticed - 1, 7, 5, 1}, // nothing worth noticing
		{time.Hour, time.Hour, time.Hour, 2},
		{time.Hour + noticed - 1, 0, time.Hour, 2},
		{0, time.Hour, time.Hour, 3}, // only the wall clock was set
		{noticed / 2, 0, time.Hour, 3},
		{noticed, 2 * time.Hour, 2 * time.Hour, 4},
	} {
		slept = c.slept
		if got := m.with(c.ahead); got != c.want || asked != c.asked {
			t.Errorf("%v ahead, %v slept: got %v, asked %d times; want %v, %d", c.ahead, c.slept, got, asked, c.want, c.asked)
		}
	}
}
