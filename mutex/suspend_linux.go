package mutex

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// suspended returns CLOCK_BOOTTIME − CLOCK_MONOTONIC: the time that the machine
// has been suspended since it was booted (clock_gettime(2)).
//
// A thread may lose its processor between two readings. So the boot clock is
// read between two readings of the other, and the tightest of some tries counts.
func suspended(time.Duration) time.Duration {
	var best time.Duration
	for try, narrow := 0, time.Duration(0); try < 10; try++ {
		before := clock(clockMonotonic)
		boot := clock(clockBoottime)
		width := clock(clockMonotonic) - before
		if try == 0 || width < narrow {
			best, narrow = boot-before-width/2, width
		}
		if narrow < noticed/4 {
			break
		}
	}
	return best
}

// clock reads a clock of the kernel. It can't fail for these two.
func clock(id uintptr) time.Duration {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}
