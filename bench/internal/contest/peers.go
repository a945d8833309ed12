package contest

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// The peers by name. bare is the floor: a client that sends SET NX PX and a
// script that compares and deletes, and nothing more.
const (
	bare          = "bare"
	redsyncPeer   = "redsync"
	redislockPeer = "redislock"
	rueidisPeer   = "rueidislock"
	ours          = "distmutex"
	oursLingering = "distmutex/linger" // keeps a lease for a moment after the unlock
	channelPeer   = "channel"
	memoryPeer    = "distmutex/memory"
)

// Client is one program's way to a lock server.
type Client interface {
	// Mutex makes the lock of a key, for one goroutine.
	Mutex(key string) Lock
	Close()
}

// Lock is one goroutine's.
type Lock interface {
	Lock(ctx context.Context) error
	Unlock() error
	Token() int64 // of the hold; 0 if the peer has none
}

// open makes a client of a peer, with the peer's own defaults but for the term.
func open(s *spec) (Client, error) {
	switch s.Peer {
	case bare:
		if len(s.Addrs) > 1 {
			return newBareNodes(s), nil
		}
		return newBare(s), nil
	case redsyncPeer:
		return newRedsync(s), nil
	case redislockPeer:
		return newRedislock(s), nil
	case rueidisPeer:
		return newRueidis(s)
	case ours, oursLingering:
		return newOurs(s)
	case memoryPeer:
		return newMemory(s)
	case channelPeer:
		return channel(make(chan struct{}, 1)), nil
	}
	if g := guest(s.Peer); g != nil {
		return g.Open(s.Addrs[0], s.ttl())
	}
	return nil, fmt.Errorf("there is no peer %q", s.Peer)
}

func dial(addr string) *goredis.Client { return goredis.NewClient(&goredis.Options{Addr: addr}) }

func dialAll(addrs []string) []*goredis.Client {
	var all []*goredis.Client
	for _, a := range addrs {
		all = append(all, dial(a))
	}
	return all
}

func closeAll(clients []*goredis.Client) {
	for _, c := range clients {
		c.Close()
	}
}

// sleep says whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// channel is a lock in one process with nothing around it.
type channel chan struct{}

func (c channel) Mutex(string) Lock          { return c }
func (c channel) Close()                     {}
func (c channel) Lock(context.Context) error { c <- struct{}{}; return nil }
func (c channel) Unlock() error              { <-c; return nil }
func (c channel) Token() int64               { return 0 }
