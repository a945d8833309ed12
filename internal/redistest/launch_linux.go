package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// launches carries commands to the one thread that starts them all.
var launches = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// launch starts a command that is killed when this process ends, however it
// ends. Linux ties that signal to the thread that started the child, so it must
// be one that lives as long as the process.
func launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	done := make(chan error)
	launches() <- func() { done <- cmd.Start() }
	return <-done
}

// suspend returns when the process stands still: SIGSTOP alone does not say when.
func suspend(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for range 10_000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return err
		}
		// The state follows the name, which is in brackets and may hold any byte.
		if i := bytes.LastIndexByte(stat, ')'); i >= 0 && bytes.HasPrefix(stat[i:], []byte(") T")) {
			return nil
		}
		time.Sleep(100 * time.Microsecond)
	}
	return errors.New("it does not stand still")
}

func resume(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }
