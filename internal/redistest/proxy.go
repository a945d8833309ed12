package redistest

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a faulty network in front of one server. It knows nothing of the
// protocol. Each client may have a proxy of its own, so that it alone suffers.
// Its methods may be called at any time from any goroutine.
type Proxy struct {
	Addr string // where clients connect

	tb     testing.TB
	target string
	port   *net.UDPConn // keeps the number ours, also while refusing
	wg     sync.WaitGroup

	mu     sync.Mutex
	ln     net.Listener // nil: refusing or closed
	closed bool
	links  map[*link]bool
	delay  [2]time.Duration // by direction
	heard  chan struct{}    // not nil: silent until it is closed
	faults []*fault
}

// The directions of a link.
const (
	toServer = iota
	toClient
)

// fault waits for a request, to lose it or its reply.
type fault struct {
	match   []byte
	left    int
	request bool // lose the request itself
	keep    bool // keep the reply, and the connection open
	done    chan struct{}
	once    sync.Once
}

func (f *fault) happened() { f.once.Do(func() { close(f.done) }) }

// NewProxy puts a proxy in front of the server at target until the test ends.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, target: target, links: map[*link]bool{}}
	tb.Cleanup(p.close)
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errPort
	for range 20 {
		if p.port, err = reserve(); err != nil {
			break
		}
		p.Addr = p.port.LocalAddr().String()
		if err = p.listen(); err == nil {
			return p
		}
		p.port.Close()
	}
	tb.Fatalf("listen for a proxy: %v", err)
	return nil
}

// Delay holds back what is sent to the server and what comes back, each by the
// time given, without narrowing the stream.
func (p *Proxy) Delay(there, back time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = [2]time.Duration{there, back}
}

// BlackHole makes all go silent: connections are taken and stay open, and
// nothing passes. When it ends, what was on its way arrives late.
func (p *Proxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.heard == nil:
		p.heard = make(chan struct{})
	case !on && p.heard != nil:
		close(p.heard)
		p.heard = nil
	}
}

// Cut resets every connection that is open now. What was on its way is lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Refuse closes the port to new connections. Those that are open stay.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed || on == (p.ln == nil):
	case on:
		p.ln.Close()
		p.ln = nil
	default:
		if err := p.listen(); err != nil {
			p.tb.Errorf("proxy listens again: %v", err)
		}
	}
}

// LoseReply lets the n-th next request that contains match ("" for any) reach
// the server, throws the reply away and resets the connection: the request was
// carried out and its sender can't know. The channel closes when it happened.
//
// A request is what a client sends at one time; clients that pipeline send
// several.
func (p *Proxy) LoseReply(n int, match string) <-chan struct{} {
	return p.arm(&fault{match: []byte(match), left: n})
}

// LoseRequest resets the connection instead of passing on the n-th next request
// that contains match: to its sender the same as LoseReply, but nothing was
// carried out.
func (p *Proxy) LoseRequest(n int, match string) <-chan struct{} {
	return p.arm(&fault{match: []byte(match), left: n, request: true})
}

// KeepReply is LoseReply for a client with a time-out: the connection stays open,
// and nothing more comes from it.
func (p *Proxy) KeepReply(n int, match string) <-chan struct{} {
	return p.arm(&fault{match: []byte(match), left: n, keep: true})
}

func (p *Proxy) arm(f *fault) <-chan struct{} {
	f.done = make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f.done
}

// due is the fault that a request meets now, if any.
func (p *Proxy) due(request []byte) *fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if !bytes.Contains(request, f.match) {
			continue
		}
		if f.left--; f.left == 0 {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			return f
		}
	}
	return nil
}

// listen opens the port. p.mu is held.
func (p *Proxy) listen() error {
	ln, err := net.Listen("tcp4", p.Addr)
	if err != nil {
		return err
	}
	p.ln = ln
	p.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // closed
			}
			p.wg.Go(func() { p.serve(c.(*net.TCPConn)) })
		}
	})
	return nil
}

func (p *Proxy) serve(client *net.TCPConn) {
	server, err := net.DialTimeout("tcp", p.target, 10*time.Second)
	if err != nil {
		client.SetLinger(0)
		client.Close()
		return
	}
	l := newLink(p, client, server.(*net.TCPConn))
	p.mu.Lock()
	if p.closed {
		l.reset()
	}
	p.links[l] = true
	p.mu.Unlock()
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	if p.ln != nil {
		p.ln.Close()
		p.ln = nil
	}
	for l := range p.links {
		l.reset()
	}
	p.mu.Unlock()
	p.wg.Wait()
	if p.port != nil {
		p.port.Close()
	}
}
