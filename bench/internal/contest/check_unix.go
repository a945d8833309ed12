//go:build unix

package contest

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// check is what all processes of a scenario share of one key.
type check struct {
	inside   int64 // how many are in the critical section
	token    int64 // of the last hold
	holder   int64 // number of the last one
	released int64 // when it was about to unlock, by the clock of this machine
	cycles   int64 // of all
	_        [3]int64
}

const maxChecks = 1024

// checks is a file that the processes have in their memories.
type checks struct{ all []check }

func openChecks(path string) (*checks, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := maxChecks * int(unsafe.Sizeof(check{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("share %s: %w", path, err)
	}
	return &checks{unsafe.Slice((*check)(unsafe.Pointer(&b[0])), maxChecks)}, nil
}

// cycles is how many there were of all keys.
func (c *checks) cycles() (n int64) {
	for i := range c.all {
		n += atomic.LoadInt64(&c.all[i].cycles)
	}
	return n
}

func (c *checks) of(key int) *check { return &c.all[key%maxChecks] }

// cpuTime is the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
