package main

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

// jainIndex is R. Jain's index of fairness: 1 if all are equal, 1/n if one has all.
func jainIndex(values []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(values)) * squares)
}
