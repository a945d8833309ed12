package contest

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var deleteIfOwned = goredis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

// bareClient sends the two commands of a lock on one server.
type bareClient struct {
	c   *goredis.Client
	ttl time.Duration
}

func newBare(s *spec) *bareClient { return &bareClient{dial(s.Addrs[0]), s.ttl()} }

func (b *bareClient) Mutex(key string) Lock { return &bareLock{b: b, key: key} }
func (b *bareClient) Close()                { b.c.Close() }

type bareLock struct {
	b          *bareClient
	key, owner string
}

// Lock asks every 1 to 11 ms, as a program does that polls in earnest.
func (l *bareLock) Lock(ctx context.Context) error {
	l.owner = rand.Text()
	for {
		ok, err := setNX(ctx, l.b.c, l.key, l.owner, l.b.ttl)
		if ok || err != nil {
			return err
		}
		if !sleep(ctx, time.Millisecond+mathrand.N(10*time.Millisecond)) {
			return ctx.Err()
		}
	}
}

func (l *bareLock) Unlock() error { return deleteOwned(context.Background(), l.b.c, l.key, l.owner) }
func (l *bareLock) Token() int64  { return 0 }

func setNX(ctx context.Context, c *goredis.Client, key, owner string, ttl time.Duration) (bool, error) {
	err := c.SetArgs(ctx, key, owner, goredis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, goredis.Nil) {
		return false, nil
	}
	return err == nil, err
}

func deleteOwned(ctx context.Context, c *goredis.Client, key, owner string) error {
	n, err := deleteIfOwned.Run(ctx, c, []string{key}, owner).Int()
	if err == nil && n == 0 {
		err = errors.New("the lock was not ours any more")
	}
	return err
}

// bareNodes sends the same two commands to several servers at once and goes on
// when most have answered: the floor of a quorum. What is left behind on a
// server is carried out before what comes next, so that no late SET outlives its
// own release.
type bareNodes struct {
	all   []*goredis.Client
	lanes []chan func()
	ttl   time.Duration
}

func newBareNodes(s *spec) *bareNodes {
	b := &bareNodes{all: dialAll(s.Addrs), ttl: s.ttl()}
	for range b.all {
		lane := make(chan func(), 16)
		b.lanes = append(b.lanes, lane)
		go func() {
			for f := range lane {
				f()
			}
		}()
	}
	return b
}

func (b *bareNodes) Mutex(key string) Lock { return &bareNodesLock{b: b, key: key} }

func (b *bareNodes) Close() {
	for _, lane := range b.lanes {
		close(lane)
	}
	closeAll(b.all)
}

type bareNodesLock struct {
	b          *bareNodes
	key, owner string
}

func (l *bareNodesLock) Lock(ctx context.Context) error {
	owner := rand.Text()
	l.owner = owner
	err := l.b.most(func(c *goredis.Client) error {
		ok, err := setNX(ctx, c, l.key, owner, l.b.ttl)
		if err == nil && !ok {
			err = errors.New("held")
		}
		return err
	})
	if err != nil {
		_ = l.Unlock() // what was granted; that this fails too is what is expected
	}
	return err
}

func (l *bareNodesLock) Unlock() error {
	owner := l.owner
	return l.b.most(func(c *goredis.Client) error { return deleteOwned(context.Background(), c, l.key, owner) })
}

func (l *bareNodesLock) Token() int64 { return 0 }

var errBehind = errors.New("too much is left behind on this server")

// most calls f for all servers at once and returns when more than half of them
// have succeeded, or can't any more.
func (b *bareNodes) most(f func(*goredis.Client) error) error {
	n := len(b.all)
	answers := make(chan error, n)
	for i, c := range b.all {
		select {
		case b.lanes[i] <- func() { answers <- f(c) }:
		default:
			answers <- errBehind
		}
	}
	good, bad := 0, 0
	for {
		err := <-answers
		if err == nil {
			good++
		} else {
			bad++
		}
		switch {
		case good > n/2:
			return nil
		case bad > (n-1)/2:
			return err
		}
	}
}
