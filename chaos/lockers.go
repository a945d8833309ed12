package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	rsgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/retry"
)

// locker is one make of lock.
type locker interface {
	lock(ctx context.Context, key string) (hold, error)
	close(ctx context.Context) error
}

// hold is a lock that was got.
type hold interface {
	token() int64
	end() time.Time
	lost() <-chan struct{} // nil: it does not say
	stands() bool
	unlock(ctx context.Context) error
}

// The makes.
const (
	ours      = "ours"
	unguarded = "unguarded" // ours, with servers that count at once after a restart
	eager     = "eager"     // ours, with what a waiter was passed counted from when it hears of it: a mistake
	redlock   = "redlock"
	redSync   = "redsync"
)

// isOurs says whether a make is distmutex, be it spoilt.
func isOurs(make string) bool { return make == ours || make == unguarded || make == eager }

// newLocker connects one make to servers. Times are those of the harness; what
// else can be set is as each make has it by itself.
func newLocker(c clientConfig) (locker, error) {
	switch c.Make {
	case ours, unguarded, eager:
		return newOurs(c)
	case redlock:
		nodes := clientsOf(c.Nodes, func(o *goredis.Options) {
			o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaxRetries = c.TTL/20, c.TTL/20, c.TTL/20, -1
		})
		return &plain{nodes, c.TTL}, nil
	case redSync:
		var pools []rsredis.Pool
		for _, n := range clientsOf(c.Nodes, nil) {
			pools = append(pools, rsgoredis.NewPool(n))
		}
		return &redSyncer{redsync.New(pools...), c.TTL}, nil
	}
	return nil, fmt.Errorf("no make of lock is called %q", c.Make)
}

func clientsOf(addrs []string, set func(*goredis.Options)) []goredis.UniversalClient {
	var all []goredis.UniversalClient
	for _, addr := range addrs {
		o := &goredis.Options{Addr: addr}
		if set != nil {
			set(o)
		}
		all = append(all, goredis.NewClient(o))
	}
	return all
}

// server is a backend of ours, of one server or of several.
type server interface {
	backend.Backend
	Close(ctx context.Context) error
}

type own struct {
	nodes   []goredis.UniversalClient
	b       server
	session *mutex.Session
}

func serverOptions(ttl time.Duration) *redis.Options {
	return &redis.Options{MaxTTL: ttl, Logger: slog.New(slog.DiscardHandler), Quorum: quorum.Options{NodeTimeout: ttl / 2}}
}

// newOurs makes a session. Every other process has its calls repeated, every other
// client speaks version 2 of the protocol, and half of them have leases linger.
// Client 5 of a quorum knows no line, as those of the release before.
func newOurs(c clientConfig) (locker, error) {
	nodes := clientsOf(c.Nodes, func(o *goredis.Options) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = c.TTL/2, c.TTL/2, c.TTL/2
		o.Protocol = 2 + int(c.Seed/100%2)
	})
	o := serverOptions(c.TTL)
	o.Unguarded, o.Unordered = c.Make == unguarded, len(nodes) > 1 && c.Seed/100%10 == 5
	s, err := open(nodes, o)
	if err != nil {
		return nil, err
	}
	var b backend.Backend = s
	if c.Make == eager {
		b = backend.Wrap(b, hasten)
	}
	if c.Seed%2 == 1 {
		b = backend.Wrap(b, retry.Middleware(retry.FullJitter(5*time.Millisecond, c.TTL/4)))
	}
	mo := &mutex.Options{TTL: c.TTL}
	if c.Seed/200%2 == 1 {
		mo.Linger = 20 * time.Millisecond
	}
	session, err := mutex.NewSession(b, mo)
	return &own{nodes, s, session}, err
}

// open makes one backend of servers.
func open(nodes []goredis.UniversalClient, o *redis.Options) (server, error) {
	if len(nodes) == 1 {
		return redis.New(nodes[0], o)
	}
	return redis.NewQuorum(nodes, o)
}

func (l *own) lock(ctx context.Context, key string) (hold, error) {
	h, err := l.session.Mutex(key).Hold(ctx)
	if err != nil {
		return nil, err
	}
	return ownHold{h}, nil
}

func (l *own) close(ctx context.Context) error {
	errs := []error{l.session.Close(ctx), l.b.Close(ctx)}
	for _, n := range l.nodes {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

type ownHold struct{ *mutex.Hold }

func (h ownHold) token() int64                     { return int64(h.Token()) }
func (h ownHold) end() time.Time                   { return h.Until() }
func (h ownHold) lost() <-chan struct{}            { return h.Lost() }
func (h ownHold) stands() bool                     { return h.Err() == nil }
func (h ownHold) unlock(ctx context.Context) error { return h.Unlock(ctx) }

// redSyncer is go-redsync/redsync.
type redSyncer struct {
	*redsync.Redsync
	ttl time.Duration
}

type syncHold struct{ *redsync.Mutex }

func (l *redSyncer) lock(ctx context.Context, key string) (hold, error) {
	m := l.NewMutex(key, redsync.WithExpiry(l.ttl))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return syncHold{m}, nil
}

func (l *redSyncer) close(context.Context) error { return nil }

func (h syncHold) token() int64          { return 0 }
func (h syncHold) end() time.Time        { return h.Until() }
func (h syncHold) lost() <-chan struct{} { return nil }
func (h syncHold) stands() bool          { return time.Now().Before(h.Until()) }

func (h syncHold) unlock(ctx context.Context) error {
	_, err := h.UnlockContext(ctx)
	return err
}
