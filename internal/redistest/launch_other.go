//go:build !linux

package redistest

import (
	"os/exec"
	"strconv"
)

// launch starts a command. Only the test's cleanup ends it here.
func launch(cmd *exec.Cmd) error { return cmd.Start() }

func suspend(pid int) error { return exec.Command("kill", "-STOP", strconv.Itoa(pid)).Run() }
func resume(pid int) error  { return exec.Command("kill", "-CONT", strconv.Itoa(pid)).Run() }
