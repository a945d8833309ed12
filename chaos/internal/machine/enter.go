// Package machine gives a process a machine of its own as far as its clocks go,
// and suspends it: its monotonic clock stands still meanwhile, the wall clock and
// CLOCK_BOOTTIME run on, as of a laptop whose lid is shut. The offsets of a time
// namespace can't do that, since they are fixed once a process is in it.
//
// It needs Linux 5.14 or newer, and the right to trace the process.
package machine

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vdsoClockgettimeSym is where Go reads clocks without a call of the system. The
// runtime lets packages that replace its clock have it.
//
//go:linkname vdsoClockgettimeSym runtime.vdsoClockgettimeSym
var vdsoClockgettimeSym uintptr

// Enter lets another process answer each reading of the monotonic clock from now
// on. Until it adopts this one, whoever reads a clock waits, and so may any goroutine:
// the scheduler reads it too. So this process can't say by itself that it has entered.
func Enter() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const (
		number, clock = 0, 16 // in struct seccomp_data; of the clock the lower half, where that is first
		load          = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal         = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer        = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_CLOCK_GETTIME, Jf: 3},
		{Code: load, K: clock},
		{Code: equal, K: unix.CLOCK_MONOTONIC, Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const everyThread = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	vdsoClockgettimeSym = 0
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|everyThread, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
