package jitter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/distmutex/distmutex/internal/jitter"
)

func TestSameOwnerAndNumberGiveTheSameTime(t *testing.T) {
	for n := range 10 {
		if a, b := jitter.Of("owner", n, time.Hour), jitter.Of("owner", n, time.Hour); a != b {
			t.Errorf("number %d: %v, then %v", n, a, b)
		}
	}
}

func TestNoTimeBelowNothing(t *testing.T) {
	if d := jitter.Of("owner", 0, 0) + jitter.Of("owner", 0, -1); d != 0 {
		t.Errorf("got %v, want 0", d)
	}
}

// Times fill the range evenly over the owners, and over the numbers of one.
func TestTimesAreSpreadEvenly(t *testing.T) {
	const draws, parts = 8000, 8
	for name, draw := range map[string]func(i int) time.Duration{
		"owners":  func(i int) time.Duration { return jitter.Of(fmt.Sprint("owner ", i), 0, parts) },
		"numbers": func(i int) time.Duration { return jitter.Of("owner", i, parts) },
	} {
		var seen [parts]int
		for i := range draws {
			seen[draw(i)]++
		}
		for part, n := range seen {
			if n < draws/parts*8/10 || n > draws/parts*12/10 {
				t.Errorf("%s: %d of %d draws are %d, want about %d", name, n, draws, part, draws/parts)
			}
		}
	}
}
