package redistest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Server is one server. Its methods may be called from any goroutine of the
// test; what fails is reported as the test's error.
type Server struct {
	Addr    string // host:port on loopback; a restart keeps it
	Flavour Flavour

	tb        testing.TB
	proc      *process      // nil: not ours to control
	miniAhead *atomic.Int64 // of a simulation: nanoseconds

	fixed   error // why the clock can't be set
	clockMu sync.Mutex
	ahead   time.Duration // of the machine's clock
}

// Durable is for Start: each write is on disk before it is answered, so Restart
// brings the data back.
func Durable() []string { return []string{"--appendonly", "yes", "--appendfsync", "always"} }

// Start starts n empty servers, which die with the test. They keep nothing on
// disk unless args, which are given to each server, say so. It skips the test
// where the flavour is not here or cannot be had n times.
func Start(tb testing.TB, f Flavour, n int, args ...string) []*Server {
	tb.Helper()
	return start(tb, f, n, "", args)
}

// start has the shim, if any, in each process that it starts.
func start(tb testing.TB, f Flavour, n int, shim string, args []string) []*Server {
	tb.Helper()
	need(tb, f)
	if f == Miniredis {
		return startMini(tb, n)
	}
	bin := found().bins[f]
	if bin == "" {
		if len(args) > 0 {
			tb.Skipf("not checked: this takes servers started with %q, and those in %s run already", args, serversEnv)
		}
		return borrow(tb, f, n)
	}
	var ps []*process
	for range n {
		ps = append(ps, &process{bin: bin, args: args, dir: tb.TempDir(), shim: shim})
	}
	return run(tb, f, ps)
}

// run starts processes, which end with the test.
func run(tb testing.TB, f Flavour, ps []*process) []*Server {
	tb.Helper()
	all := make([]*Server, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		tb.Cleanup(func() {
			p.close()
			if tb.Failed() {
				tb.Logf("log of %s at %s:\n%s", f, p.addr(), p.log.tail())
			}
		})
		wg.Go(func() {
			if err := p.open(); err != nil {
				tb.Errorf("start %s: %v", f, err)
			}
			all[i] = &Server{Addr: p.addr(), Flavour: f, tb: tb, proc: p}
		})
	}
	wg.Wait()
	if tb.Failed() {
		tb.FailNow()
	}
	return all
}

// Addrs lists the servers' addresses.
func Addrs(servers []*Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr)
	}
	return all
}

// Kill ends the server without warning (SIGKILL).
func (s *Server) Kill() { s.control("kill", (*process).kill) }

// Stop asks the server to end (SIGTERM) and waits for it.
func (s *Server) Stop() { s.control("stop", (*process).stop) }

// Restart starts the server again at the same address, after Kill if it runs.
// It is empty then, unless it was started with [Durable].
func (s *Server) Restart() { s.control("restart", (*process).restart) }

// Freeze stops the server where it is (SIGSTOP): connections stay open, new ones
// are taken by the kernel, nothing is answered. Its clock goes on.
func (s *Server) Freeze() { s.control("freeze", (*process).freeze) }

// Thaw ends Freeze; what was sent meanwhile is then carried out.
func (s *Server) Thaw() { s.control("thaw", (*process).thaw) }

func (s *Server) control(verb string, f func(*process) error) {
	s.tb.Helper()
	if s.proc == nil {
		s.tb.Errorf("%s %s: it is not this test's process; begin with NeedsControl", verb, s.Addr)
	} else if err := f(s.proc); err != nil {
		s.tb.Errorf("%s %s: %v", verb, s.Addr, err)
	}
}

// Wipe deletes all keys, as an operator's FLUSHALL does.
func (s *Server) Wipe() {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := newClient(s.Addr)
	defer c.Close()
	if err := c.FlushAll(ctx).Err(); err != nil {
		s.tb.Errorf("wipe %s: %v", s.Addr, err)
	}
}

// Client is a new client of the server, as NewClient makes it.
func (s *Server) Client() *goredis.Client { return NewClient(s.tb, s.Addr) }

// NewClient makes a client that has no retries, so that a test sees each failure
// at once, and obeys the deadline of its context. It is closed when the test
// ends.
func NewClient(tb testing.TB, addr string) *goredis.Client {
	c := newClient(addr)
	tb.Cleanup(func() { c.Close() })
	return c
}
