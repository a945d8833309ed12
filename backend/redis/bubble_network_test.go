package redis_test

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// network is one process's way to a server in a bubble.
type network struct {
	*bubble

	mu     sync.Mutex
	dice   *rand.Rand
	conns  map[*stream]net.Conn // and what the process holds of each
	slow   time.Duration        // what a piece takes at most
	silent time.Time            // nothing arrives before
	lose   int                  // so many answers that come next
}

// client is a process's. While go-redis sleeps, or makes a round trip, with a mutex
// for which another goroutine waits, no time passes: so it must not.
func (n *network) client(t *testing.T) *goredis.Client {
	return worst(t, "127.0.0.1:6379", func(o *goredis.Options) {
		o.Dialer, o.PoolSize = n.dial, 20
		o.MaxRetries, o.ReadTimeout, o.DialTimeout = 1, 300*time.Millisecond, 300*time.Millisecond
		o.DisableIdentity, o.DialerRetries = true, 1
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	})
}

// trouble befalls a network.
func (n *network) trouble(ctx context.Context, dice *rand.Rand) {
	upTo := func(d time.Duration) time.Duration { return time.Duration(dice.Int64N(int64(d))) }
	for ctx.Err() == nil {
		lasts := upTo(60 * time.Millisecond)
		n.mu.Lock()
		switch dice.IntN(5) {
		case 0:
			n.cut()
		case 1:
			lasts *= 8
			n.silent = time.Now().Add(lasts)
		case 2:
			n.slow = upTo(200 * time.Millisecond)
		case 3:
			n.lose = 1 + dice.IntN(3)
		}
		n.mu.Unlock()
		pause(ctx, lasts)
		n.mu.Lock()
		n.slow, n.lose = 0, 0
		n.mu.Unlock()
		pause(ctx, upTo(500*time.Millisecond))
	}
}

// cut ends all connections for the process. What it has sent arrives all the
// same. n.mu is held.
func (n *network) cut() {
	for _, c := range n.conns {
		c.Close()
	}
}

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	server, err := n.bubble.dial()
	if err != nil {
		return nil, err
	}
	process, wire := net.Pipe()
	s := &stream{network: n}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns == nil {
		n.conns = make(map[*stream]net.Conn)
	}
	n.conns[s] = wire
	s.both.Add(2)
	go s.carry(wire, server, false)
	go s.carry(server, wire, true)
	go func() {
		s.both.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.conns, s)
	}()
	return process, nil
}

// stream is a connection, whose pieces arrive in order.
type stream struct {
	*network
	both sync.WaitGroup
}

type piece struct {
	bytes []byte
	due   time.Time
}

// carry brings what is read from one end to the other, then closes both.
func (s *stream) carry(from, to net.Conn, answers bool) {
	defer s.both.Done()
	defer from.Close() // which ends the reading
	pieces := make(chan piece, 1000)
	go func() {
		defer close(pieces)
		defer from.Close() // who writes must not wait: it may have a mutex, and then no time passes
		last := time.Now()
		for greeting := true; ; greeting = false {
			b := make([]byte, 4096)
			k, err := from.Read(b)
			if err != nil || !greeting && answers && s.loses() {
				return
			}
			if !greeting { // of which go-redis waits for the answer with a mutex
				last = s.due(last)
			}
			pieces <- piece{b[:k], last}
		}
	}()
	defer to.Close()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			return
		}
	}
}

// due is when a piece arrives that is sent now, behind another.
func (s *stream) due(last time.Time) time.Time {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	takes := 50*time.Microsecond + time.Duration(s.dice.Int64N(int64(100*time.Microsecond)+int64(s.slow)))
	at := time.Now()
	if s.silent.After(at) {
		at = s.silent
	}
	if at = at.Add(takes); at.Before(last) {
		return last
	}
	return at
}

func (s *stream) loses() bool {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	s.lose--
	return s.lose >= 0
}
