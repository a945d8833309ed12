package contest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	goredis "github.com/redis/go-redis/v9"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/telemetry"
)

// session is distmutex as a program has it that leaves nothing out: fenced,
// renewed, and with telemetry wired to providers that do nothing.
type session struct {
	s     *mutex.Session
	clean func()
}

func newSession(s *spec, b backend.Backend, clean func()) (*session, error) {
	tel, err := telemetry.New(&telemetry.Options{
		TracerProvider: tracenoop.NewTracerProvider(),
		MeterProvider:  metricnoop.NewMeterProvider(),
	})
	if err != nil {
		return nil, err
	}
	o := &mutex.Options{TTL: s.ttl()}
	if s.Peer == oursLingering {
		// Seven other processes wait for less than 50 ms.
		o.HandOver, o.Linger = 5*time.Millisecond, time.Millisecond
	}
	m, err := mutex.NewSession(backend.Wrap(b, tel.Middleware), o)
	if err != nil {
		return nil, err
	}
	return &session{m, clean}, nil
}

func newMemory(s *spec) (*session, error) { return newSession(s, memory.New(nil), func() {}) }

func newOurs(s *spec) (*session, error) {
	clients := dialAll(s.Addrs)
	quiet := &redis.Options{Logger: slog.New(slog.DiscardHandler)}
	if len(clients) == 1 {
		b, err := redis.New(clients[0], quiet)
		if err != nil {
			return nil, err
		}
		return newSession(s, b, func() {
			b.Close(brief())
			closeAll(clients)
		})
	}
	var nodes []goredis.UniversalClient
	for _, c := range clients {
		nodes = append(nodes, c)
	}
	b, err := redis.NewQuorum(nodes, quiet)
	if err != nil {
		return nil, err
	}
	// The servers are new, so nothing has to be waited for.
	if err := b.DeclareNew(context.Background()); err != nil && !errors.Is(err, redis.ErrNotNew) {
		return nil, err
	}
	return newSession(s, b, func() {
		b.Close(brief())
		closeAll(clients)
	})
}

// brief is a context that has ended: servers may be frozen, and nobody waits.
func brief() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (s *session) Mutex(key string) Lock { return &leased{m: s.s.Mutex(key)} }

func (s *session) Close() {
	s.s.Close(brief())
	s.clean()
}

type leased struct {
	m *mutex.Leased
	h *mutex.Hold
}

func (l *leased) Lock(ctx context.Context) (err error) {
	l.h, err = l.m.Hold(ctx)
	return err
}

func (l *leased) Unlock() error { return l.h.Unlock(context.Background()) }
func (l *leased) Token() int64  { return int64(l.h.Token()) }
func (l *leased) Lost() bool    { return l.h.Err() != nil }
