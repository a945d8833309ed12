// Package network is the faulty network between one client and one server of
// the Redis protocol. It knows where a request begins and ends, so it can lose
// its reply, hold it back while its sender has given up, and deliver it twice.
package network

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// The directions of a link.
const (
	ToServer = iota
	ToClient
)

// Conditions are what a network is like for a while. The zero value is well.
type Conditions struct {
	Hold   [2]bool          // by direction: nothing passes until it ends, then all does
	Delay  [2]time.Duration // by direction, and as much again at random
	Refuse bool             // new connections end at once

	// How probable it is that a lock's request meets a fault.
	LoseRequest float64 // not carried out, and the connection ends
	LoseReply   float64 // carried out, and the connection ends without a reply
	Late        float64 // the connection ends; the request is carried out later
	Twice       float64 // carried out, and once more later, on another connection

	// And a message of a channel, whose connection goes on.
	LosePush  float64 // it does not arrive
	LatePush  float64 // it arrives later, behind others
	TwicePush float64 // it arrives, and once more later
}

// Counts is how often each fault was met.
type Counts struct {
	LostRequests, LostReplies, Late, Twice, Cut atomic.Int64
	LostPushes, LatePushes, TwicePushes         atomic.Int64
}

// Latest is how long a request or a push is held back at most.
const Latest = 1500 * time.Millisecond

// Proxy is the network between one client and one server. Its methods may be
// called at any time.
type Proxy struct {
	Addr string // where the client connects

	counts *Counts
	ln     net.Listener
	wg     sync.WaitGroup
	closed chan struct{}

	mu      sync.Mutex
	dice    *rand.Rand
	target  string
	now     Conditions
	changed chan struct{} // closed when now has changed
	links   map[*link]bool
	trap    func()
	trapAt  Moment
	after   int // how many such moments more until trap is called
}

// Moment is one at which something of a lock has been passed on.
type Moment int

const (
	Request Moment = iota
	Reply
	Push
	Moments = iota
)

// New begins to listen before a server. Faults are drawn from seed.
func New(target string, seed uint64, counts *Counts) (*Proxy, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Addr: ln.Addr().String(), counts: counts, ln: ln, closed: make(chan struct{}), target: target,
		dice: rand.New(rand.NewPCG(seed, 1)), changed: make(chan struct{}), links: make(map[*link]bool),
	}
	p.wg.Go(p.accept)
	return p, nil
}

// Set changes what the network is like.
func (p *Proxy) Set(change func(*Conditions)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.now)
	close(p.changed)
	p.changed = make(chan struct{})
}

// Cut ends all connections; what is on its way is lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		p.counts.Cut.Add(1)
		l.end()
	}
}

// Lead makes connections lead to another server, and ends those that do not.
func (p *Proxy) Lead(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.Cut()
}

// Trap calls f once, when the n-th next request of a lock, reply to one, or push
// has been passed on.
func (p *Proxy) Trap(at Moment, n int, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap, p.trapAt, p.after = f, at, n
}

// Close ends all connections and waits for what is held back.
func (p *Proxy) Close() {
	close(p.closed)
	p.ln.Close()
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { p.serve(c.(*net.TCPConn)) })
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	target, refuse := p.target, p.now.Refuse
	p.mu.Unlock()
	server, err := dial(target)
	if err != nil || refuse {
		client.SetLinger(0)
		client.Close()
		if err == nil {
			server.Close()
		}
		return
	}
	l := &link{p: p, ends: [2]*net.TCPConn{ToServer: server, ToClient: client}, gone: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = true
	if p.target != target {
		l.end()
	}
	p.mu.Unlock()
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func dial(target string) (*net.TCPConn, error) {
	c, err := net.DialTimeout("tcp", target, time.Second)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// drawRequest decides what befalls a request.
func (p *Proxy) drawRequest() fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draw(loseRequest, p.now.LoseRequest, p.now.LoseReply, p.now.Late, p.now.Twice)
}

// drawPush decides what befalls a push.
func (p *Proxy) drawPush() fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draw(losePush, p.now.LosePush, p.now.LatePush, p.now.TwicePush)
}

// draw has p.mu held. The shares are those of first and the fates that follow it.
func (p *Proxy) draw(first fate, shares ...float64) fate {
	at := p.dice.Float64()
	for i, share := range shares {
		if at < share {
			return first + fate(i)
		}
		at -= share
	}
	return passes
}

// pause is a random time up to longest.
func (p *Proxy) pause(longest time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.dice.Int64N(int64(longest) + 1))
}

// passed counts down to the trap.
func (p *Proxy) passed(at Moment) {
	p.mu.Lock()
	f := p.trap
	if at != p.trapAt {
		f = nil
	} else if p.after--; p.after > 0 {
		f = nil
	} else {
		p.trap = nil
	}
	p.mu.Unlock()
	if f != nil {
		f()
	}
}
