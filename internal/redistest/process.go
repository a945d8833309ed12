package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startBound is generous: the machine may be busy with other tests.
const startBound = 30 * time.Second

// process is one server's process and, over its restarts, its port and folder.
type process struct {
	bin  string
	conf string // a file of settings, if any
	args []string
	dir  string
	shim string // sets its clock; empty: none does
	log  logBuffer

	mu     sync.Mutex
	port   *net.UDPConn // keeps the number ours, also while the server is down
	cmd    *exec.Cmd    // nil: down
	exited chan struct{}
}

// errPort means that somebody else has the TCP port.
var errPort = errors.New("the port is taken")

// open finds a port and starts the server.
func (p *process) open() error {
	if p.shim != "" {
		if err := p.setClock(0); err != nil {
			return err
		}
	}
	for range 20 {
		port, err := reserve()
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.port = port
		err = p.start()
		p.mu.Unlock()
		if !errors.Is(err, errPort) {
			return err
		}
		port.Close()
	}
	return errPort
}

// reserve picks a port below those that systems use for outgoing connections,
// and holds its number as a UDP port, which tells other processes of tests. Of
// others, whoever has the TCP port is seen.
func reserve() (*net.UDPConn, error) {
	var err error
	for range 100 {
		var c *net.UDPConn
		addr := net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 12000 + rand.IntN(20000)}
		if c, err = net.ListenUDP("udp4", &addr); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp4", addr.String()); err == nil {
			l.Close()
			return c, nil
		}
		c.Close()
	}
	return nil, err
}

func (p *process) addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.port == nil {
		return ""
	}
	return p.port.LocalAddr().String()
}

// start runs the server and waits until it answers. p.mu is held.
func (p *process) start() error {
	addr := p.port.LocalAddr().(*net.UDPAddr)
	args := append([]string{
		"--port", strconv.Itoa(addr.Port), "--bind", "127.0.0.1", "--dir", p.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--enable-debug-command", "local",
	}, p.args...)
	if p.conf != "" {
		args = append([]string{p.conf}, args...)
	}
	cmd := exec.Command(p.bin, args...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if p.shim != "" {
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+p.shim, "DISTMUTEX_CLOCK="+filepath.Join(p.dir, clockFile))
	}
	mark := p.log.len()
	if err := launch(cmd); err != nil {
		return err
	}
	p.cmd, p.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) {
		defer close(exited)
		cmd.Wait() // its log says more than its status
	}(p.exited)
	err := p.ready(addr.String())
	if err == nil {
		return nil
	}
	p.end(os.Kill)
	if strings.Contains(p.log.from(mark), "in use") {
		return errPort
	}
	return fmt.Errorf("%w; its log:\n%s", err, p.log.from(mark))
}

// ready waits until the process, and no other at its port, answers.
func (p *process) ready(addr string) error {
	deadline := time.Now().Add(startBound)
	wait := time.Millisecond
	for {
		if p.answers(addr, deadline) {
			return nil
		}
		select {
		case <-p.exited:
			return errors.New("it ended at once")
		case <-time.After(wait):
			wait = min(2*wait, 50*time.Millisecond)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer within %v", startBound)
		}
	}
}

func (p *process) answers(addr string, deadline time.Time) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(deadline)
	if _, err := io.WriteString(c, "PING\r\nINFO server\r\n"); err != nil {
		return false
	}
	r := bufio.NewReader(c)
	pong, err := r.ReadString('\n')
	if err != nil || strings.HasPrefix(pong, "-LOADING") {
		return false
	}
	var n int
	if _, err := fmt.Fscanf(r, "$%d\r\n", &n); err != nil {
		return true // it answered, but tells strangers nothing: a password is set
	}
	info := make([]byte, n)
	_, err = io.ReadFull(r, info)
	return err == nil && field(string(info), "process_id") == strconv.Itoa(p.cmd.Process.Pid)
}

// end signals the process and waits for it. p.mu is held.
func (p *process) end(sig os.Signal) error {
	if p.cmd == nil {
		return nil
	}
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err == nil {
		<-p.exited
		p.cmd = nil
	}
	return err
}

func (p *process) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end(os.Kill)
}

func (p *process) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		resume(p.cmd.Process.Pid) // a frozen process does not hear SIGTERM
	}
	return p.end(syscall.SIGTERM)
}

func (p *process) restart() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.end(os.Kill); err != nil {
		return err
	}
	return p.start()
}

func (p *process) runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil
}

func (p *process) freeze() error { return p.signalled(suspend) }
func (p *process) thaw() error   { return p.signalled(resume) }

func (p *process) signalled(f func(pid int) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return errors.New("it is down")
	}
	return f(p.cmd.Process.Pid)
}

func (p *process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(os.Kill) // SIGKILL ends a frozen process too
	if p.port != nil {
		p.port.Close()
	}
}

// logBuffer keeps what a server prints.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logBuffer) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Len()
}

func (l *logBuffer) from(mark int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.buf.Bytes()[mark:])
}

// tail is the end of the log: what happened before a test failed.
func (l *logBuffer) tail() string { return l.from(max(0, l.len()-4000)) }
