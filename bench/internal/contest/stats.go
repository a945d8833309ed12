package contest

import (
	"math"
	"slices"
)

// quantile interpolates between the two values beside it; NaN of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	at := q * float64(len(s)-1)
	low := int(at)
	if low == len(s)-1 {
		return s[low]
	}
	return s[low] + (at-float64(low))*(s[low+1]-s[low])
}
