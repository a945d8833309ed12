package redis_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// line is one client's way to one node. Its end can be moved to another server,
// as a failover of an address does.
type line struct {
	mu    sync.Mutex
	addr  string // empty: out of reach
	conns []net.Conn
}

var errOutOfReach = errors.New("out of reach")

func (l *line) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.addr == "" {
		return nil, errOutOfReach
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", l.addr)
	if err == nil {
		l.conns = append(l.conns, c)
	}
	return c, err
}

// to moves the end of the line.
func (l *line) to(addr string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addr = addr
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// party is one process's view of the nodes.
type party struct {
	*redis.Quorum
	lines []*line
}

// join makes a party that reaches the servers given; nil is one out of reach.
func join(t testing.TB, o redis.Options, servers ...*redistest.Server) *party {
	t.Helper()
	p := new(party)
	var clients []goredis.UniversalClient
	for i, s := range servers {
		l := new(line)
		if s != nil {
			l.addr = s.Addr
		}
		p.lines = append(p.lines, l)
		name := "node" + string(rune('1'+i))
		clients = append(clients, goredis.NewClient(&goredis.Options{Addr: name, Dialer: l.dial, DialerRetries: 1, MaxRetries: 1}))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if p.Quorum, err = redis.NewQuorum(clients, &o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closeWithin(t, p.Quorum)
		for _, c := range clients {
			c.Close()
		}
	})
	return p
}

// cycle makes a party know the servers: it holds another key for a moment.
func (p *party) cycle(t *testing.T) {
	t.Helper()
	l := lease("another", time.Second)
	mustRelease(t, p, mustAcquire(t, p, l))
}

// refusals is what a party was told until it got the key.
type refusals struct {
	held      int
	uncounted map[string]int // by reason
	left      time.Duration  // the longest that was told
}

// persist tries until it has the key, and says when it was told so.
func (p *party) persist(t *testing.T, key string, ttl time.Duration, within time.Duration) (backend.Lease, time.Time, refusals) {
	t.Helper()
	r := refusals{uncounted: make(map[string]int)}
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		want := lease(key, ttl)
		got, err := p.Acquire(t.Context(), want)
		if err == nil {
			return got, time.Now(), r
		}
		var e *quorum.UncountedError
		if errors.As(err, &e) {
			r.uncounted[e.Reason]++
			r.left = max(r.left, e.Left)
		}
		if errors.Is(err, backend.ErrHeld) {
			r.held++
			continue
		}
		_ = p.Release(t.Context(), want) // as after any unknown outcome
	}
	return backend.Lease{}, time.Time{}, r
}
