package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const ms = time.Millisecond

func kill(n *nemesis, s *strike) {
	h := n.host(s.Nodes[0])
	h.Kill()
	s.pause(0, 2*time.Second)
	h.Restart()
}

func killAndWipe(n *nemesis, s *strike) {
	h := n.host(s.Nodes[0])
	h.Kill()
	s.failed(h.wipe())
	s.pause(0, 300*ms)
	h.Restart()
}

func killTwice(n *nemesis, s *strike) {
	killAndWipe(n, s)
	s.pause(0, n.delay())
	killAndWipe(n, s)
}

// olderData is what a machine does that loses power: the end of what was
// written is missing.
func olderData(n *nemesis, s *strike) {
	h := n.host(s.Nodes[0])
	if s.failed(h.copyData()) {
		return
	}
	s.pause(50*ms, time.Second)
	h.Kill()
	s.failed(h.putBack())
	h.Restart()
}

// rolling restarts one node after the other, with its data or without, before
// the last one counts again or after.
func rolling(n *nemesis, s *strike) {
	forgets, space := s.dice.IntN(2) == 0, 300*ms
	if s.dice.IntN(2) == 0 {
		space = n.delay() + 300*ms
	}
	for _, node := range s.Nodes {
		h := n.host(node)
		h.Kill()
		if forgets {
			s.failed(h.wipe())
		}
		h.Restart()
		s.pause(space-300*ms, space)
	}
}

func wipeAll(n *nemesis, s *strike) {
	for _, node := range s.Nodes {
		n.host(node).Kill()
		s.failed(n.host(node).wipe())
	}
	for _, node := range s.Nodes {
		n.host(node).Restart()
	}
}

// flush empties live servers. A client that never saw such a server before and
// is the first to look takes it for an old one, which is outside the promise:
// the marker that it leaves says so.
func flush(n *nemesis, s *strike) {
	for _, node := range s.Nodes {
		s.failed(n.host(node).do("flushall"))
	}
	if n.Nodes == 1 {
		return // nobody guards it
	}
	for _, node := range s.Nodes {
		for range 100 {
			marker, err := ask(n.host(node), func(ctx context.Context, c *goredis.Client) (string, error) {
				return c.Get(ctx, "distmutex:1:node\x00").Result()
			})
			if f := strings.Fields(marker); err == nil && len(f) == 6 {
				s.undue = s.undue || f[3] == "0"
				break
			}
			time.Sleep(10 * ms)
		}
	}
}

// promote puts a replica in a server's place, which does not have the last of
// what the server was told.
func promote(n *nemesis, s *strike) {
	n.moving.Lock()
	defer n.moving.Unlock()
	node := s.Nodes[0]
	if s.failed(n.spare.follow(n.host(node))) || s.failed(n.spare.lead()) {
		return
	}
	s.pause(0, time.Second)
	n.replace(node)
	n.spare.Kill()
	s.failed(n.spare.wipe())
	n.spare.Restart()
}

// resync makes a server forget its own data for that of another.
func resync(n *nemesis, s *strike) {
	h, other := n.host(s.Nodes[0]), n.spare
	if n.Nodes > 1 {
		other = n.host((s.Nodes[0] + 1 + s.dice.IntN(n.Nodes-1)) % n.Nodes)
	}
	err := h.follow(other)
	if s.failed(h.lead()) {
		h.Restart() // it must not stay a replica
	}
	s.failed(err)
}

func freeze(n *nemesis, s *strike) {
	for _, node := range s.Nodes {
		n.host(node).Freeze()
	}
	s.pause(50*ms, 5*n.TTL/2)
	for _, node := range s.Nodes {
		n.host(node).Thaw()
	}
}

func killConnections(n *nemesis, s *strike) {
	s.failed(n.host(s.Nodes[0]).do("client", "kill", "type", "normal"))
}

func flushScripts(n *nemesis, s *strike) { s.failed(n.host(s.Nodes[0]).do("script", "flush")) }

func outOfMemory(n *nemesis, s *strike) {
	h := n.host(s.Nodes[0])
	if s.failed(h.do("config", "set", "maxmemory", 1)) {
		return
	}
	s.pause(50*ms, n.TTL)
	h.insist("config", "set", "maxmemory", 0)
}

// crowd leaves no room for more connections. The one that ends it is open.
func crowd(n *nemesis, s *strike) {
	_, err := ask(n.host(s.Nodes[0]), func(ctx context.Context, c *goredis.Client) (any, error) {
		if err := c.ConfigSet(ctx, "maxclients", "1").Err(); err != nil {
			return nil, err
		}
		s.failed(c.Do(ctx, "client", "kill", "type", "normal", "skipme", "yes").Err())
		s.pause(50*ms, n.TTL)
		return nil, c.ConfigSet(ctx, "maxclients", "10000").Err()
	})
	s.failed(err)
}

const spin = `local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
local stop = now() + tonumber(ARGV[1]) while now() < stop do end`

func busy(n *nemesis, s *strike) {
	s.failed(n.host(s.Nodes[0]).do("eval", spin, 0, 50+s.dice.IntN(1000)))
}

func deleteLocks(n *nemesis, s *strike) {
	for _, node := range s.Nodes {
		args := []any{"del"}
		for i := range n.Keys {
			args = append(args, fmt.Sprint("k", i))
		}
		s.failed(n.host(node).do(args...))
	}
}
