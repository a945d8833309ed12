package main

import (
	"syscall"
	"time"

	"github.com/distmutex/distmutex/chaos/internal/network"
)

// usual is how probable it is that a message meets a fault, of each kind.
const usual = 0.003

func (n *nemesis) background(share float64) {
	for _, s := range n.world.clients {
		for _, p := range s.proxies {
			p.Set(rates(share))
		}
	}
}

func rates(share float64) func(*network.Conditions) {
	return func(c *network.Conditions) {
		c.LoseRequest, c.LoseReply, c.Late, c.Twice = share, share, share, share
		pushes := min(20*share, 0.25) // which end no connection
		c.LosePush, c.LatePush, c.TwicePush = pushes, pushes, pushes
	}
}

func (n *nemesis) client(s *strike) *slot { return n.world.clients[s.Client] }

func lossy(n *nemesis, s *strike) {
	set := func(share float64) {
		for _, p := range n.client(s).proxies {
			p.Set(rates(share))
		}
	}
	set(0.05)
	s.pause(100*ms, 2*n.TTL)
	set(usual)
}

func slow(n *nemesis, s *strike) {
	delay := time.Duration(1+s.dice.IntN(60)) * ms
	n.networks(s.Nodes[0], func(p *network.Proxy) {
		p.Set(func(c *network.Conditions) { c.Delay = [2]time.Duration{delay, delay} })
	})
	s.pause(100*ms, 3*n.TTL)
	n.networks(s.Nodes[0], func(p *network.Proxy) { p.Set(func(c *network.Conditions) { c.Delay = [2]time.Duration{} }) })
}

// silence stops messages in some directions for a while. What was on its way is
// then lost, or arrives late.
func (n *nemesis) silence(s *strike, dirs [2]bool, proxies []*network.Proxy) {
	for _, p := range proxies {
		p.Set(func(c *network.Conditions) { c.Hold = dirs })
	}
	s.pause(50*ms, 5*n.TTL/2)
	for _, p := range proxies {
		if s.dice.IntN(2) == 0 {
			p.Cut()
		}
		p.Set(func(c *network.Conditions) { c.Hold = [2]bool{} })
	}
}

func (n *nemesis) all(node int) (proxies []*network.Proxy) {
	n.networks(node, func(p *network.Proxy) { proxies = append(proxies, p) })
	return proxies
}

var bothWays = [2]bool{true, true}

func cutNode(n *nemesis, s *strike) {
	if s.dice.IntN(2) == 0 {
		n.silence(s, bothWays, n.all(s.Nodes[0]))
		return
	}
	n.networks(s.Nodes[0], func(p *network.Proxy) { p.Set(func(c *network.Conditions) { c.Refuse = true }); p.Cut() })
	s.pause(50*ms, 2*n.TTL)
	n.networks(s.Nodes[0], func(p *network.Proxy) { p.Set(func(c *network.Conditions) { c.Refuse = false }) })
}

func oneWay(n *nemesis, s *strike) {
	var dirs [2]bool
	dirs[s.dice.IntN(2)] = true
	n.silence(s, dirs, n.all(s.Nodes[0]))
}

func cutClient(n *nemesis, s *strike) {
	some := s.dice.Perm(n.Nodes)[:1+s.dice.IntN(max(1, n.Nodes/2))]
	var proxies []*network.Proxy
	for _, node := range some {
		proxies = append(proxies, n.client(s).proxies[node])
	}
	n.silence(s, bothWays, proxies)
}

// sides are the networks that a partition cuts: every other client reaches the
// middle node and two others, the rest the middle and the other two.
func (n *nemesis) sides(middle int) (proxies []*network.Proxy) {
	for i, c := range n.world.clients {
		for far := range 2 {
			node := (middle + 1 + far + 2*(i%2)) % n.Nodes
			proxies = append(proxies, c.proxies[node])
		}
	}
	return proxies
}

func bridge(n *nemesis, s *strike) {
	s.Client = -1
	n.silence(s, bothWays, n.sides(s.dice.IntN(n.Nodes)))
}

// bridgeAnd makes the one node forget that both sides of a partition share, once
// whoever holds a lock has it there.
func bridgeAnd(forget func(*nemesis, *strike)) func(*nemesis, *strike) {
	return func(n *nemesis, s *strike) {
		s.Client = -1
		cut := n.sides(s.Nodes[0])
		for _, p := range cut {
			p.Set(func(c *network.Conditions) { c.Hold = bothWays })
		}
		s.pause(n.TTL, 2*n.TTL)
		forget(n, s)
		s.pause(n.TTL/2, n.TTL)
		for _, p := range cut {
			p.Set(func(c *network.Conditions) { c.Hold = [2]bool{} })
		}
	}
}

func pauseClient(n *nemesis, s *strike) {
	c := n.client(s)
	c.signal(syscall.SIGSTOP)
	s.pause(20*ms, 5*n.TTL/2)
	c.signal(syscall.SIGCONT)
}

// trap acts at the moment when a request, a reply or a push has been passed on,
// or after a while without one.
func (n *nemesis) trap(s *strike, act func()) {
	hit := make(chan struct{})
	p := n.client(s).proxies[s.dice.IntN(n.Nodes)]
	at := network.Moment(s.dice.IntN(network.Moments))
	p.Trap(at, 1+s.dice.IntN(10), func() {
		act()
		close(hit)
	})
	select {
	case <-hit:
	case <-time.After(n.TTL):
		p.Trap(at, 0, nil)
		act()
	}
}

func trapPause(n *nemesis, s *strike) {
	c := n.client(s)
	n.trap(s, func() { c.signal(syscall.SIGSTOP) })
	s.pause(20*ms, 5*n.TTL/2)
	c.signal(syscall.SIGCONT)
}

func killClient(n *nemesis, s *strike) {
	n.client(s).kill()
	n.revive(s)
}

func trapKill(n *nemesis, s *strike) {
	c := n.client(s)
	n.trap(s, func() { c.signal(syscall.SIGKILL) })
	c.kill()
	n.revive(s)
}

func (n *nemesis) revive(s *strike) {
	s.pause(0, 500*ms)
	if err := n.client(s).start(n.Dir); err != nil {
		n.tb.Errorf("start client %d again: %v", s.Client, err)
	}
}
