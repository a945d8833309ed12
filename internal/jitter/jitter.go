// Package jitter draws random times from the owner of an attempt, which is
// random itself. So whoever gives the owners gives all that is random about an
// attempt, and a simulation can run it again.
package jitter

import (
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Of returns the nth time below most for owner: always the same one. It is zero
// if most is not positive.
func Of(owner string, n int, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(owner))
	var random rand.PCG
	random.Seed(h.Sum64(), uint64(n))
	part, _ := bits.Mul64(random.Uint64(), uint64(most))
	return time.Duration(part)
}
