package redistest

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// StartClocked is Start with servers whose clocks SetClock sets. Where that can't
// be had the servers are as Start makes them, and FixedClock says why.
func StartClocked(tb testing.TB, f Flavour, n int, args ...string) []*Server {
	tb.Helper()
	shim, fixed := "", error(nil)
	if f != Miniredis && found().bins[f] != "" {
		shim, fixed = builtShim()
	}
	servers := start(tb, f, n, shim, args)
	for _, s := range servers {
		if s.fixed = fixed; fixed == nil {
			s.fixed = s.tryClock()
		}
	}
	return servers
}

// FixedClock says why the server's clock can't be set; nil if it can.
func (s *Server) FixedClock() error { return s.fixed }

// SetClock sets the server's clock ahead of the machine's, or behind it, and
// leaves the clocks by which the machine measures durations alone.
func (s *Server) SetClock(ahead time.Duration) {
	s.tb.Helper()
	s.clockMu.Lock()
	defer s.clockMu.Unlock()
	if err := s.setClock(ahead); err != nil {
		s.tb.Errorf("set the clock of %s: %v", s.Addr, err)
	}
}

// MoveClock moves the server's clock from where it is.
func (s *Server) MoveClock(by time.Duration) {
	s.tb.Helper()
	s.clockMu.Lock()
	defer s.clockMu.Unlock()
	if err := s.setClock(s.ahead + by); err != nil {
		s.tb.Errorf("move the clock of %s: %v", s.Addr, err)
	}
}

// setClock is called with s.clockMu held.
func (s *Server) setClock(ahead time.Duration) (err error) {
	switch {
	case s.fixed != nil:
		return s.fixed
	case s.miniAhead != nil:
		s.miniAhead.Store(int64(ahead))
	case s.proc != nil && s.proc.shim != "":
		err = s.proc.setClock(ahead)
	default:
		return errors.New("it runs already, or was not started by StartClocked")
	}
	s.ahead = ahead
	return err
}

// tryClock says why the clock does not move though it should.
func (s *Server) tryClock() error {
	s.clockMu.Lock()
	defer s.clockMu.Unlock()
	if err := s.setClock(time.Hour); err != nil {
		return err
	}
	c := newClient(s.Addr)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startBound)
	defer cancel()
	now, err := c.Time(ctx).Result()
	if err == nil && time.Until(now) < time.Hour/2 {
		err = errors.New("this build of the server does not read it by the shim")
	}
	return errors.Join(err, s.setClock(0))
}

const (
	clockFile = "clock" // in a process's folder

	// A server may tell the time by what it read up to a millisecond ago and a clock
	// that only measures durations (Valkey 9.1, valkey-io/valkey#3193).
	clockAge = 2 * time.Millisecond
)

// setClock writes in place, and all at once, so that no reading is half of each.
// Whatever reaches the server after it is done by the new time.
func (p *process) setClock(ahead time.Duration) error {
	file, err := os.OpenFile(filepath.Join(p.dir, clockFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead)), 0)
	time.Sleep(clockAge)
	return errors.Join(err, file.Close())
}

//go:embed shim/clock.c
var shimSource []byte

// builtShim is the library that sets a process's clock. It is kept in the user's
// cache, under a name of its own for each source.
var builtShim = sync.OnceValues(func() (path string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the shim that sets a server's clock can't be built: %w", err)
		}
	}()
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "distmutex")
	path = filepath.Join(dir, fmt.Sprintf("clock-%s-%s-%.8x.so", runtime.GOOS, runtime.GOARCH, sha256.Sum256(shimSource)))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	building, err := os.MkdirTemp(dir, "clock") // and renamed whole: others may build it too
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(building)
	built := filepath.Join(building, "clock.so")
	gcc := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-o", built, "-x", "c", "-", "-ldl")
	gcc.Stdin = bytes.NewReader(shimSource)
	if out, err := gcc.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, os.Rename(built, path)
})
