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
	loseRequest fate = iota
	loseReply
	late
	twice
	losePush
	latePush
	twicePush
	passes
)

// link is one connection through a proxy.
type link struct {
	p       *Proxy
	ends    [2]*net.TCPConn // by the direction that leads to them
	once    sync.Once
	gone    chan struct{}
	deaf    atomic.Bool // the next reply is to be lost
	awaited atomic.Bool // the next reply is a lock's
	hears   atomic.Bool // it has subscribed to channels
	writing sync.Mutex  // to the client
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
		first := in.Buffered() == 0 // what comes together travels together
		r, err := readRequest(in)
		if err != nil || !l.travel(ToServer, first) || !l.pass(r) {
			return
		}
	}
}

// pass carries one request on. It says no if the connection has to end.
func (l *link) pass(r request) bool {
	f := passes
	if r.mutates() {
		f = l.p.drawRequest()
		l.awaited.Store(true)
	}
	if r.verb == "subscribe" {
		l.hears.Store(true)
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
	if r.mutates() {
		l.p.passed(Request)
	}
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
	in := bufio.NewReaderSize(l.ends[ToServer], 16<<10)
	for {
		raw, pushed, err := l.together(in)
		if !l.write(raw) || err != nil {
			return
		}
		if l.awaited.Swap(false) {
			l.p.passed(Reply)
		}
		if pushed {
			l.p.passed(Push)
		}
	}
}

// together reads what came together, but for the pushes that do not pass.
func (l *link) together(in *bufio.Reader) (raw []byte, pushed bool, err error) {
	for first := true; first || in.Buffered() > 0; first = false {
		r, err := readReply(in)
		if err != nil {
			return raw, pushed, err
		}
		if l.deaf.Load() || !l.travel(ToClient, first) {
			return nil, false, net.ErrClosed
		}
		push := r.push && l.hears.Load()
		if push && !l.passPush(r.raw) {
			continue
		}
		raw, pushed = append(raw, r.raw...), pushed || push
	}
	return raw, pushed, nil
}

// passPush says whether a push passes now. The connection goes on in any case.
func (l *link) passPush(raw []byte) bool {
	switch l.p.drawPush() {
	case losePush:
		l.p.counts.LostPushes.Add(1)
		return false
	case latePush:
		l.p.counts.LatePushes.Add(1)
		l.pushLater(raw)
		return false
	case twicePush:
		l.p.counts.TwicePushes.Add(1)
		l.pushLater(raw)
	}
	return true
}

// pushLater delivers a push after a while, behind later ones.
func (l *link) pushLater(raw []byte) {
	wait := l.p.pause(Latest)
	l.p.wg.Go(func() {
		select {
		case <-l.gone:
		case <-time.After(wait):
			if l.travel(ToClient, false) {
				l.write(raw)
			}
		}
	})
}

// write says whether the client was sent all.
func (l *link) write(raw []byte) bool {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.ends[ToClient].Write(raw)
	return err == nil
}

// travel takes as long as the network does, with its delay or without. It says no
// if the link is gone.
func (l *link) travel(dir int, delayed bool) bool {
	for {
		l.p.mu.Lock()
		held, delay, changed := l.p.now.Hold[dir], l.p.now.Delay[dir], l.p.changed
		l.p.mu.Unlock()
		var wait <-chan time.Time
		switch {
		case held:
		case delay > 0 && delayed:
			delayed = false
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
