// Package fairness says in a number how evenly turns were shared.
package fairness

// Jain is R. Jain's index of what each had: 1 if all are equal, 1/n if one has all,
// NaN if nobody has any.
func Jain(values []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(values)) * squares)
}
