package contest

import (
	"syscall"
	"time"
)

// hold is a sleep that is no longer than it has to be: one of Go's own may take
// a millisecond more, as long as nothing else happens in the process.
func hold(d time.Duration) {
	for end := time.Now().Add(d); d > 0; d = time.Until(end) {
		t := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&t, nil) // interrupted: once more
	}
}
