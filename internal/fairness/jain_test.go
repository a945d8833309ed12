package fairness_test

import (
	"math"
	"testing"

	"github.com/distmutex/distmutex/internal/fairness"
)

func TestJain(t *testing.T) {
	if got := fairness.Jain([]float64{5, 5, 5, 5}); got != 1 {
		t.Errorf("equal shares are fair to %v, want 1", got)
	}
	if got := fairness.Jain([]float64{8, 0, 0, 0}); got != 0.25 {
		t.Errorf("one of four that has all is fair to %v, want 0.25", got)
	}
	for _, nothing := range [][]float64{nil, {0, 0}} {
		if got := fairness.Jain(nothing); !math.IsNaN(got) {
			t.Errorf("%v is fair to %v, want no number", nothing, got)
		}
	}
}
