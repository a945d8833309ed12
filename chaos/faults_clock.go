package main

import "time"

// clockAhead lasts for longer than any lease: one that is set back earlier may
// go unnoticed. When one node's is set back, its locks last for so much longer.
func clockAhead(n *nemesis, s *strike) {
	by := n.TTL + time.Duration(s.dice.Int64N(int64(5*n.TTL)))
	if n.Mode == beyond && n.Nodes > 1 && s.dice.IntN(2) == 0 {
		by = time.Hour
	}
	n.setClocks(s, by)
	s.pause(n.delay(), n.delay()+n.TTL)
	n.setClocks(s, 0)
}

func clockBack(n *nemesis, s *strike) {
	n.setClocks(s, -n.TTL/10-time.Duration(s.dice.Int64N(int64(5*n.TTL))))
	s.pause(50*ms, 2*n.TTL)
	n.setClocks(s, 0)
}

// drift makes clocks run too fast and then too slow, or the other way round, by
// a share of what goes by.
func drift(share float64) func(*nemesis, *strike) {
	return func(n *nemesis, s *strike) {
		rate := share
		if s.dice.IntN(2) == 0 {
			rate = -share
		}
		half := 1250*ms + time.Duration(s.dice.Int64N(int64(5*time.Second)))
		began := time.Now()
		for t := time.Duration(0); t < 2*half; t = time.Since(began) {
			n.setClocks(s, time.Duration(rate*float64(min(t, 2*half-t))))
			time.Sleep(time.Duration(float64(ms) / share))
		}
		n.setClocks(s, 0)
	}
}

// standStill stops clocks, but for a few milliseconds that they go and are set
// back by. Then they are right again at once.
func standStill(n *nemesis, s *strike) {
	length := 50*ms + time.Duration(s.dice.Int64N(int64(3*n.TTL)))
	began := time.Now()
	for t := time.Duration(0); t < length; t = time.Since(began) {
		n.setClocks(s, -t)
		time.Sleep(3 * ms)
	}
	n.setClocks(s, 0)
}

func (n *nemesis) setClocks(s *strike, ahead time.Duration) {
	for _, node := range s.Nodes {
		n.host(node).SetClock(ahead)
	}
}
