//go:build !linux

package mutex

import "time"

// suspended takes the wall clock's word: where it ran ahead of the monotonic
// one, the machine may have been asleep, and a hold that would not have outlived
// that is lost. Setting the clock ahead looks the same: the safe side.
func suspended(ahead time.Duration) time.Duration { return ahead }
