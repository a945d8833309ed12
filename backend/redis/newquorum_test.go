package redis_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

const members = 5

// five runs a test on five servers of each flavour; on simulated ones only where
// there are no others, since their quorum says nothing that one of them does not.
func five(t *testing.T, test func(t *testing.T, servers []*redistest.Server)) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) { test(t, redistest.Start(t, f, members)) })
}

// quorumOf is a quorum of servers that count at once.
func quorumOf(t testing.TB, addrs []string) *redis.Quorum {
	t.Helper()
	q := strangers(t, addrs, &redis.Options{Logger: slog.New(slog.DiscardHandler)})
	declare(t, q)
	return q
}

// strangers is a quorum of servers of which nothing is known.
func strangers(t testing.TB, addrs []string, o *redis.Options, edits ...func(*goredis.Options)) *redis.Quorum {
	t.Helper()
	var clients []goredis.UniversalClient
	for _, addr := range addrs {
		o := &goredis.Options{Addr: addr}
		for _, edit := range edits {
			edit(o)
		}
		clients = append(clients, goredis.NewClient(o))
	}
	q, err := redis.NewQuorum(clients, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closeWithin(t, q)
		for _, c := range clients {
			c.Close()
		}
	})
	return q
}

// declare makes the servers count at once, unless that has been done.
func declare(t testing.TB, q *redis.Quorum) {
	t.Helper()
	if err := q.DeclareNew(t.Context()); err != nil && !errors.Is(err, redis.ErrNotNew) {
		t.Fatal(err)
	}
}

func TestNewQuorumRefusesBadInput(t *testing.T) {
	a, b := goredis.NewClient(&goredis.Options{Addr: "a:1"}), goredis.NewClient(&goredis.Options{Addr: "b:1"})
	again := goredis.NewClient(&goredis.Options{Addr: "a:1"})
	for _, c := range []*goredis.Client{a, b, again} {
		defer c.Close()
	}
	var none *goredis.Client
	for name, clients := range map[string][]goredis.UniversalClient{
		"none": nil, "nil": {a, nil, b}, "typed nil": {a, none, b}, "one client twice": {a, b, a}, "one address twice": {a, b, again},
	} {
		var e *backend.InvalidError
		if _, err := redis.NewQuorum(clients, nil); !errors.As(err, &e) || e.Field != "clients" {
			t.Errorf("%s: got %v, want an InvalidError of clients", name, err)
		}
	}
	var e *backend.InvalidError
	if _, err := redis.NewQuorum([]goredis.UniversalClient{a}, &redis.Options{MaxTTL: -1}); !errors.As(err, &e) || e.Field != "MaxTTL" {
		t.Errorf("options: got %v", err)
	}
}

func TestQuorumRefusesTwoAddressesOfOneServer(t *testing.T) {
	five(t, func(t *testing.T, servers []*redistest.Server) {
		if servers[0].Flavour == redistest.Miniredis {
			t.Skip("not checked: miniredis does not say who it is")
		}
		alias := redistest.NewProxy(t, servers[0].Addr)
		q := quorumOf(t, []string{servers[0].Addr, servers[1].Addr, alias.Addr})
		for range 2 {
			var e *backend.InvalidError
			_, err := q.Acquire(t.Context(), lease("k", time.Second))
			if !errors.As(err, &e) || !strings.Contains(err.Error(), alias.Addr) || !strings.Contains(err.Error(), servers[0].Addr) {
				t.Errorf("got %v, want an InvalidError that names both addresses", err)
			}
		}
		for _, s := range servers[:2] {
			if got := locks(t, s.Client()); len(got) != 0 {
				t.Errorf("there are %q", got)
			}
		}
	})
}

func TestOpenOfSeveralURLsIsAQuorum(t *testing.T) {
	five(t, func(t *testing.T, servers []*redistest.Server) {
		var urls []string
		for _, s := range servers {
			urls = append(urls, "redis://"+s.Addr)
		}
		b, err := open(t, nil, urls...)
		if err != nil {
			t.Fatal(err)
		}
		declare(t, b.(*redis.Quorum))
		held := mustAcquire(t, b, lease("k", 10*time.Second))
		eventually(t, "all five have the key", func() bool {
			n := 0
			for _, s := range servers {
				n += len(locks(t, s.Client()))
			}
			return n == members
		})
		mustRelease(t, b, held)
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		for _, s := range servers {
			if got := locks(t, s.Client()); len(got) != 0 {
				t.Errorf("Close did not wait: there are %q", got)
			}
		}
		var e *backend.InvalidError
		if _, err := open(t, nil, urls[0], urls[1], urls[0]); !errors.As(err, &e) {
			t.Errorf("one URL twice: got %v, want an InvalidError", err)
		}
	})
}

func TestOpenOfAQuorumNeedsServersThatKeepLocks(t *testing.T) {
	five(t, func(t *testing.T, servers []*redistest.Server) {
		redistest.NeedsControl(t, servers[0].Flavour)
		urls := []string{"redis://" + servers[0].Addr, "redis://" + servers[1].Addr, "redis://" + servers[2].Addr}
		o := &redis.Options{Logger: slog.New(slog.DiscardHandler)}
		servers[2].Kill()
		if _, err := open(t, o, urls...); err != nil {
			t.Errorf("one away: %v", err)
		}
		c := servers[1].Client()
		c.ConfigSet(t.Context(), "maxmemory", "100mb")
		c.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru")
		if _, err := open(t, o, urls...); err == nil || !strings.Contains(err.Error(), servers[1].Addr) || !strings.Contains(err.Error(), "allkeys-lru") {
			t.Errorf("one that evicts: got %v", err)
		}
		q := strangers(t, redistest.Addrs(servers[:3]), o)
		if _, err := q.Acquire(t.Context(), lease("k", time.Second)); err == nil || errors.Is(err, backend.ErrHeld) {
			t.Errorf("a majority that does not count: got %v, want an unknown outcome", err)
		}
	})
}

// Law 11: whatever client it has, a quorum does not wait for a frozen minority.
// One wait would take longer than the test may.
func TestFrozenMinorityIsNotWaitedFor(t *testing.T) {
	five(t, func(t *testing.T, servers []*redistest.Server) {
		redistest.NeedsControl(t, servers[0].Flavour)
		o := &redis.Options{Logger: slog.New(slog.DiscardHandler)}
		o.Quorum.NodeTimeout = 5 * time.Minute
		patient := func(o *goredis.Options) { o.ReadTimeout = 5 * time.Minute }
		q := strangers(t, redistest.Addrs(servers), o, patient)
		declare(t, q)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		cycle := func() {
			held, err := q.Acquire(ctx, lease("k", 20*time.Second))
			if err == nil {
				err = errors.Join(q.Renew(ctx, held), q.Release(ctx, held))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		cycle()
		for i := range 2 {
			servers[i].Freeze()
			defer servers[i].Thaw()
			for range 50 {
				cycle()
			}
		}
		servers[0].Thaw()
		servers[1].Thaw()
		eventually(t, "no server has a key", func() bool {
			return !slices.ContainsFunc(servers, func(s *redistest.Server) bool { return len(locks(t, s.Client())) > 0 })
		})
	})
}
