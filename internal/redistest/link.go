package redistest

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection through a proxy.
type link struct {
	proxy  *Proxy
	ends   [2]*net.TCPConn // by the direction that leads to them
	losing atomic.Pointer[fault]
	once   sync.Once
	gone   chan struct{}
}

// parcel is what was read at one time, and when it is to arrive.
type parcel struct {
	data []byte
	due  time.Time
}

func newLink(p *Proxy, client, server *net.TCPConn) *link {
	return &link{proxy: p, ends: [2]*net.TCPConn{toServer: server, toClient: client}, gone: make(chan struct{})}
}

// run carries bytes both ways until either end closes.
func (l *link) run() {
	var wg sync.WaitGroup
	for dir := range l.ends {
		c := make(chan parcel, 1024)
		wg.Go(func() { l.read(dir, c) })
		wg.Go(func() { l.write(dir, c) })
	}
	wg.Wait()
}

// reset ends both connections as a crash would, without a farewell.
func (l *link) reset() { l.end(true) }

func (l *link) end(hard bool) {
	l.once.Do(func() {
		close(l.gone)
		for _, c := range l.ends {
			if hard {
				c.SetLinger(0)
			}
			c.Close()
		}
	})
}

// read takes what one end sends.
func (l *link) read(dir int, out chan<- parcel) {
	defer close(out)
	from := l.ends[1-dir]
	for {
		buf := make([]byte, 64<<10)
		n, err := from.Read(buf)
		if n > 0 && l.passes(dir, buf[:n]) {
			l.proxy.mu.Lock()
			due := time.Now().Add(l.proxy.delay[dir])
			l.proxy.mu.Unlock()
			select {
			case out <- parcel{buf[:n], due}:
			case <-l.gone:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// passes says whether data goes on, and carries out the faults it meets.
func (l *link) passes(dir int, data []byte) bool {
	if dir == toClient {
		f := l.losing.Load()
		if f == nil {
			return true
		}
		if !f.keep {
			l.reset()
		}
		f.happened()
		return false
	}
	if l.losing.Load() != nil {
		return true // this connection has its fault already
	}
	f := l.proxy.due(data)
	switch {
	case f == nil:
	case f.request:
		l.reset()
		f.happened()
		return false
	default:
		l.losing.Store(f)
	}
	return true
}

// write delivers parcels when they are due, and after the last one closes the
// link.
func (l *link) write(dir int, in <-chan parcel) {
	for pc := range in {
		if !l.sleep(time.Until(pc.due)) || !l.audible() {
			return
		}
		if _, err := l.ends[dir].Write(pc.data); err != nil {
			l.reset()
			return
		}
	}
	if l.audible() {
		l.end(false)
	}
}

func (l *link) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.gone:
		return false
	}
}

// audible waits until the proxy is not silent.
func (l *link) audible() bool {
	for {
		l.proxy.mu.Lock()
		heard := l.proxy.heard
		l.proxy.mu.Unlock()
		if heard == nil {
			return true
		}
		select {
		case <-heard:
		case <-l.gone:
			return false
		}
	}
}
