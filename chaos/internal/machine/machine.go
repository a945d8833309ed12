package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Machine is that of one process. Its methods may be called at any time.
type Machine struct {
	pid      int
	process  int // descriptors
	listener int
	gone     chan struct{}

	mu     sync.Mutex
	asleep bool
	at     int64 // of the monotonic clock, when it fell asleep
	slept  int64 // before
}

// Adopt waits until a process has entered, and answers what it asks until it ends.
func Adopt(pid int) (*Machine, error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	listener, err := listenerOf(pid, process)
	if err != nil {
		unix.Close(process)
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	m := &Machine{pid: pid, process: process, listener: listener, gone: make(chan struct{})}
	go m.answer()
	return m, nil
}

// listenerOf gets the other end of what a process asks, from the descriptors that
// it has.
func listenerOf(pid, process int) (int, error) {
	ends := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
	for begun := time.Now(); time.Since(begun) < 10*time.Second; {
		names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, name := range names {
			if what, _ := os.Readlink(name); what == "anon_inode:seccomp notify" {
				number, err := strconv.Atoi(filepath.Base(name))
				if err != nil {
					return 0, err
				}
				return unix.PidfdGetfd(process, number, 0)
			}
		}
		if n, err := unix.Poll(ends, 1); err == nil && n > 0 {
			return 0, unix.ESRCH
		}
	}
	return 0, errors.New("it does not enter")
}

// Asleep says whether the process is suspended.
func (m *Machine) Asleep() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asleep
}

// Suspend stops the process and its clock. Nobody else may let it go on until
// Resume has.
func (m *Machine) Suspend() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asleep {
		return nil
	}
	if err := m.signal(unix.SIGSTOP); err != nil {
		return err
	}
	if err := m.stopped(); err != nil {
		return errors.Join(err, m.signal(unix.SIGCONT))
	}
	m.asleep, m.at = true, Read(unix.CLOCK_MONOTONIC)
	return nil
}

// Resume lets the process go on, from where its clock stood.
func (m *Machine) Resume() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.asleep {
		return nil
	}
	m.slept += Read(unix.CLOCK_MONOTONIC) - m.at
	m.asleep = false
	return m.signal(unix.SIGCONT)
}

// signal is called with mu held.
func (m *Machine) signal(sig unix.Signal) error {
	select {
	case <-m.gone:
		return unix.ESRCH
	default:
		return unix.PidfdSendSignal(m.process, sig, nil, 0)
	}
}

// Gone is closed when the process has ended.
func (m *Machine) Gone() <-chan struct{} { return m.gone }

// stopped waits until no thread runs any more: a signal needs a moment.
func (m *Machine) stopped() error {
	for begun := time.Now(); time.Since(begun) < 5*time.Second; time.Sleep(100 * time.Microsecond) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", m.pid))
		if err != nil || len(threads) == 0 {
			return errors.Join(err, unix.ESRCH)
		}
		running := false
		for _, name := range threads {
			text, err := os.ReadFile(name)
			_, state, _ := strings.Cut(string(text), ") ")
			running = running || err == nil && !strings.HasPrefix(state, "T")
		}
		if !running {
			return nil
		}
	}
	return fmt.Errorf("process %d does not stop", m.pid)
}

// The kernel's struct seccomp_notif and seccomp_notif_resp.
type (
	question struct {
		id         uint64
		pid, flags uint32
		nr         int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	response struct {
		id    uint64
		val   int64
		err   int32
		flags uint32
	}
)

// answer answers one question after the other. Who asks may be stopped or killed
// at any time, and asks again when it goes on.
func (m *Machine) answer() {
	runtime.LockOSThread() // for good: nothing else gets its priority
	atOnce := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	unix.SchedSetAttr(0, &atOnce, 0) // where that is not allowed, clocks are slow
	defer m.leave()
	for {
		var q question
		switch _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(m.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&q))); errno {
		case 0:
		case unix.EINTR:
			continue
		default: // ENOENT: it was interrupted, or nobody is left
			if m.ended() {
				return
			}
			continue
		}
		r := response{id: q.id}
		if err := m.tell(int(q.pid), uintptr(q.args[1])); err != nil {
			r.err = -int32(unix.EFAULT)
		}
		unix.Syscall(unix.SYS_IOCTL, uintptr(m.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
	}
}

func (m *Machine) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.gone)
	unix.Close(m.listener)
	unix.Close(m.process)
}

func (m *Machine) ended() bool {
	fds := []unix.PollFd{{Fd: int32(m.listener), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLHUP != 0
}

// tell writes the process's time where a thread of it wants it.
func (m *Machine) tell(thread int, where uintptr) error {
	m.mu.Lock()
	now := m.at
	if !m.asleep {
		now = Read(unix.CLOCK_MONOTONIC)
	}
	t := unix.NsecToTimespec(now - m.slept)
	m.mu.Unlock()
	size := int(unsafe.Sizeof(t))
	local := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(&t))}}
	local[0].SetLen(size)
	_, err := unix.ProcessVMWritev(thread, local, []unix.RemoteIovec{{Base: where, Len: size}}, 0)
	return err
}

// Read reads a clock by a call of the system, in nanoseconds.
func Read(clock int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err) // there is no such clock
	}
	return t.Nano()
}
