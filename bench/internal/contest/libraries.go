package contest

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type redsyncClient struct {
	rs   *redsync.Redsync
	all  []*goredis.Client
	spec *spec
}

func newRedsync(s *spec) *redsyncClient {
	c := &redsyncClient{all: dialAll(s.Addrs), spec: s}
	var pools []redsyncredis.Pool
	for _, g := range c.all {
		pools = append(pools, redsyncpool.NewPool(g))
	}
	c.rs = redsync.New(pools...)
	return c
}

func (c *redsyncClient) Close() { closeAll(c.all) }

func (c *redsyncClient) Mutex(key string) Lock {
	return &redsyncLock{c.rs.NewMutex(key, redsync.WithExpiry(c.spec.ttl()))}
}

type redsyncLock struct{ m *redsync.Mutex }

func (l *redsyncLock) Lock(ctx context.Context) error { return l.m.LockContext(ctx) }
func (l *redsyncLock) Token() int64                   { return 0 }
func (l *redsyncLock) Unlock() error {
	ok, err := l.m.Unlock()
	if err == nil && !ok {
		err = errors.New("the lock was not ours any more")
	}
	return err
}

type redislockClient struct {
	c    *goredis.Client
	l    *redislock.Client
	spec *spec
}

func newRedislock(s *spec) *redislockClient {
	c := dial(s.Addrs[0])
	return &redislockClient{c, redislock.New(c), s}
}

func (c *redislockClient) Close()                { c.c.Close() }
func (c *redislockClient) Mutex(key string) Lock { return &redislockLock{c: c, key: key} }

type redislockLock struct {
	c    *redislockClient
	key  string
	held *redislock.Lock
}

// Lock waits as the library's own example does; its default is not to wait.
func (l *redislockLock) Lock(ctx context.Context) (err error) {
	wait := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
	l.held, err = l.c.l.Obtain(ctx, l.key, l.c.spec.ttl(), wait)
	return err
}

func (l *redislockLock) Unlock() error { return l.held.Release(context.Background()) }
func (l *redislockLock) Token() int64  { return 0 }

// rueidisClient has the two settings that the library's own page recommends for
// one server.
type rueidisClient struct{ l rueidislock.Locker }

func newRueidis(s *spec) (*rueidisClient, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: s.Addrs},
		KeyMajority:    1,
		NoLoopTracking: true,
		KeyValidity:    s.ttl(),
	})
	return &rueidisClient{l}, err
}

func (c *rueidisClient) Close()                { c.l.Close() }
func (c *rueidisClient) Mutex(key string) Lock { return &rueidisLock{c: c, key: key} }

type rueidisLock struct {
	c      *rueidisClient
	key    string
	held   context.Context
	unlock context.CancelFunc
}

// Lock gives the library a context that ends with ctx for as long as it waits,
// and not later: its end would unlock.
func (l *rueidisLock) Lock(ctx context.Context) (err error) {
	hold, cancel := context.WithCancel(context.Background())
	waited := context.AfterFunc(ctx, cancel)
	l.held, l.unlock, err = l.c.l.WithContext(hold, l.key)
	switch {
	case err != nil:
		cancel()
	case !waited():
		l.unlock()
		return ctx.Err()
	}
	return err
}

func (l *rueidisLock) Lost() bool { return l.held.Err() != nil }

func (l *rueidisLock) Unlock() error { l.unlock(); return nil }
func (l *rueidisLock) Token() int64  { return 0 }
