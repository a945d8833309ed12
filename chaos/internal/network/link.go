package network

import (
	"bufio"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// fate is what befalls a request.
type fate int

const (
	passes fate = iota
	loseRequest
	loseReply
	late
	twice
)

// link is one connection through a proxy.
type link struct {
	p       *Proxy
	ends    [2]*net.TCPConn // by the direction that leads to them
	once    sync.Once
	gone    chan struct{}
	deaf    atomic.Bool // the next reply is to be lost
	awaited atomic.Bool // the next reply is a lock's
}

// run carries requests and replies until either end closes.
func (l *link) run() {
	var wg sync.WaitGroup
	wg.Go(l.requests)
	wg.Go(l.replies)
	wg.Wait()
}

// end resets both connections, as a crash would.
func (l *link) end() {
	l.once.Do(func() {
		close(l.gone)
		for _, c := range l.ends {
			c.SetLinger(0)
			c.Close()
		}
	})
}

func (l *link) requests() {
	defer l.end()
	in := bufio.NewReader(l.ends[ToClient])
	for {
		r, err := readRequest(in)
		if err != nil || !l.travel(ToServer) || !l.pass(r) {
			return
		}
	}
}

// pass carries one request on. It says no if the connection has to end.
func (l *link) pass(r request) bool {
	f := passes
	if r.mutates() {
		f = l.p.draw()
		l.awaited.Store(true)
	}
	switch f {
	case loseRequest:
		l.p.counts.LostRequests.Add(1)
		return false
	case loseReply:
		l.p.counts.LostReplies.Add(1)
		l.deaf.Store(true)
	case late:
		l.p.counts.Late.Add(1)
		l.p.later(r)
		return false
	case twice:
		l.p.counts.Twice.Add(1)
		l.p.later(r)
	}
	_, err := l.ends[ToServer].Write(r.raw)
	return err == nil
}

// later delivers a request on a connection of its own, after a while.
func (p *Proxy) later(r request) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	wait := p.pause(Latest)
	p.wg.Go(func() {
		select {
		case <-p.closed:
			return
		case <-time.After(wait):
		}
		c, err := dial(target)
		if err != nil {
			return // it is lost
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Write(r.raw); err == nil {
			io.ReadFull(c, make([]byte, 1)) // it has been carried out
		}
	})
}

func (l *link) replies() {
	defer l.end()
	buf := make([]byte, 16<<10)
	for {
		n, err := l.ends[ToServer].Read(buf)
		if n > 0 {
			if l.deaf.Load() || !l.travel(ToClient) {
				return
			}
			if _, err := l.ends[ToClient].Write(buf[:n]); err != nil {
				return
			}
			if l.awaited.Swap(false) {
				l.p.passed()
			}
		}
		if err != nil {
			return
		}
	}
}

// travel takes as long as the network does. It says no if the link is gone.
func (l *link) travel(dir int) bool {
	delayed := false
	for {
		l.p.mu.Lock()
		held, delay, changed := l.p.now.Hold[dir], l.p.now.Delay[dir], l.p.changed
		l.p.mu.Unlock()
		var wait <-chan time.Time
		switch {
		case held:
		case delay > 0 && !delayed:
			delayed = true
			wait, changed = time.After(delay+l.p.pause(delay)), nil
		default:
			return true
		}
		select {
		case <-wait:
		case <-changed:
		case <-l.gone:
			return false
		}
	}
}
