package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/distmutex/distmutex/chaos/internal/history"
	"github.com/distmutex/distmutex/chaos/internal/machine"
	"github.com/distmutex/distmutex/chaos/internal/network"
)

// slot is the place of one client: its networks, which stay, and its process,
// which is killed and started anew.
type slot struct {
	number  int
	config  clientConfig
	proxies []*network.Proxy // one for each node
	clock   history.Clock

	mu          sync.Mutex
	cmd         *exec.Cmd        // nil: it does not run
	machine     *machine.Machine // where it can be suspended
	stdin       io.WriteCloser
	exited      chan error
	incarnation int
	logs        []string         // of all incarnations
	deaths      map[string]int64 // when a killed incarnation had certainly ended
	last        *farewell        // of the last incarnation
}

// id is the name of the process that runs, or ran last.
func (s *slot) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idLocked()
}

func (s *slot) idLocked() string { return fmt.Sprintf("c%d.%d", s.number, s.incarnation) }

// start starts a process, if none runs.
func (s *slot) start(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return nil
	}
	s.incarnation++
	c := s.config
	c.ID = s.idLocked()
	c.Log = filepath.Join(dir, c.ID+".log")
	c.Seed += uint64(s.incarnation)
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), clientEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err1 := cmd.StdoutPipe()
	in, err2 := cmd.StdinPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return err
	}
	s.cmd, s.stdin, s.exited, s.logs = cmd, in, make(chan error, 1), append(s.logs, c.Log)
	if s.machine = nil; c.Sleeps {
		s.machine, err = machine.Adopt(cmd.Process.Pid)
	}
	if err != nil {
		cmd.Process.Kill()
	}
	go s.await(cmd, out, s.exited)
	return err
}

// await hears a process's last words, and its end.
func (s *slot) await(cmd *exec.Cmd, out io.Reader, exited chan<- error) {
	var f farewell
	heard := json.NewDecoder(out).Decode(&f)
	err := cmd.Wait()
	if heard == nil {
		s.mu.Lock()
		s.last = &f
		s.mu.Unlock()
	}
	exited <- err
}

// kill ends the process where it is, and notes when it was gone.
func (s *slot) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	<-s.exited
	s.deaths[s.idLocked()] = s.clock.Now()
	s.cmd = nil
}

// signal stops or continues the process; nothing, if there is none, or if it is
// suspended.
func (s *slot) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil && (sig == syscall.SIGKILL || s.machine == nil || !s.machine.Asleep()) {
		s.cmd.Process.Signal(sig)
	}
}

// patient tells the process that the faults are over, so that whoever waits for a
// lock does until he has it.
func (s *slot) patient() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return fmt.Errorf("client %d does not run", s.number)
	}
	_, err := s.stdin.Write([]byte{1})
	return err
}

// stop asks the process to end, and kills it if it does not.
func (s *slot) stop(limit time.Duration) error {
	s.mu.Lock()
	cmd, exited := s.cmd, s.exited
	if cmd != nil {
		s.stdin.Close()
	}
	s.mu.Unlock()
	if cmd == nil {
		return nil
	}
	select {
	case err := <-exited:
		exited <- err // for kill
		s.mu.Lock()
		s.cmd = nil
		s.mu.Unlock()
		return err
	case <-time.After(limit):
		cmd.Process.Signal(syscall.SIGQUIT) // it prints what its goroutines do
		time.Sleep(time.Second)
		s.kill()
		return fmt.Errorf("client %d does not end", s.number)
	}
}

// holds reads what all incarnations saw.
func (s *slot) holds() (all []history.Hold, err error) {
	for _, name := range s.logs {
		file, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was killed before it began
		}
		if err != nil {
			return nil, err
		}
		holds, err := history.Read(file)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range holds {
			holds[i].Killed = s.deaths[holds[i].Client()]
		}
		all = append(all, holds...)
	}
	return all, nil
}
