package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/distmutex/distmutex/bench/internal/contest"
)

// client has a session for each goroutine: who shares one shares what it holds.
type client struct {
	c        *clientv3.Client
	seconds  int
	sessions []*concurrency.Session
}

func open(addr string, ttl time.Duration) (contest.Client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 10 * time.Second})
	return &client{c: c, seconds: int(ttl / time.Second)}, err
}

// Close leaves the leases to end by themselves, as the server ends with them.
func (c *client) Close() {
	for _, s := range c.sessions {
		s.Orphan()
	}
	c.c.Close()
}

func (c *client) Mutex(key string) contest.Lock {
	s, err := concurrency.NewSession(c.c, concurrency.WithTTL(c.seconds))
	if err != nil {
		return unable{err}
	}
	c.sessions = append(c.sessions, s)
	return &lock{concurrency.NewMutex(s, key)}
}

type lock struct{ m *concurrency.Mutex }

func (l *lock) Lock(ctx context.Context) error { return l.m.Lock(ctx) }
func (l *lock) Unlock() error                  { return l.m.Unlock(context.Background()) }

// Token is the revision of the store when the lock was got.
func (l *lock) Token() int64 { return l.m.Header().Revision }

// unable is the lock of a session that could not be made.
type unable struct{ err error }

func (u unable) Lock(context.Context) error { return u.err }
func (u unable) Unlock() error              { return u.err }
func (u unable) Token() int64               { return 0 }
