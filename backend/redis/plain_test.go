package redis_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/internal/redistest"
)

func newPlain(t testing.TB, c goredis.UniversalClient) *redis.Backend {
	t.Helper()
	return silent(t, c, redis.Options{Plain: true})
}

// old makes a client's server one without native commands.
func old(c *goredis.Client) *goredis.Client {
	c.AddHook(&lacking{})
	return c
}

type lacking struct{ goredis.Hook }

func (*lacking) DialHook(next goredis.DialHook) goredis.DialHook          { return next }
func (*lacking) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }

func (*lacking) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		for _, cmd := range cmds {
			if cmd.Name() == "delex" || cmd.Name() == "delifeq" {
				cmd.Args()[0] = "no-such-command"
			}
		}
		return next(ctx, cmds)
	}
}

// bothWays runs a test with the native commands, where there are any, and with
// what there is instead.
func bothWays(t *testing.T, test func(t *testing.T, s *redistest.Server, edit func(*goredis.Client) *goredis.Client)) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		t.Run("native", func(t *testing.T) {
			test(t, s, func(c *goredis.Client) *goredis.Client { return c })
		})
		s.Wipe()
		t.Run("watched", func(t *testing.T) { test(t, s, old) })
	})
}

func TestConformanceOfPlain(t *testing.T) {
	bothWays(t, func(t *testing.T, s *redistest.Server, edit func(*goredis.Client) *goredis.Client) {
		client := func(t testing.TB) backend.Backend {
			return newPlain(t, edit(goredis.NewClient(&goredis.Options{Addr: s.Addr})))
		}
		conformance.Run(t, exempt(conformance.Harness{
			New:      client,
			Peer:     func(t testing.TB, _ backend.Backend) backend.Backend { return client(t) },
			Unfenced: true,
		}, s.Flavour))
	})
}

func TestConformanceOfPlainWithTokensFromElsewhere(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		addr, tokens := redistest.Start(t, f, 1)[0].Addr, new(fencing.Counter)
		client := func(t testing.TB) backend.Backend {
			return backend.Wrap(newPlain(t, redistest.NewClient(t, addr)), fencing.Middleware(tokens))
		}
		conformance.Run(t, exempt(conformance.Harness{
			New:  client,
			Peer: func(t testing.TB, _ backend.Backend) backend.Backend { return client(t) },
		}, f))
	})
}

func TestConformanceOfAPlainQuorum(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		if !inTurn(f, 1) { // TestConformanceOfPlain is on all, with the commands of each
			return
		}
		servers := redistest.Start(t, f, 3)
		client := func(t testing.TB) backend.Backend {
			var clients []goredis.UniversalClient
			for _, s := range servers {
				clients = append(clients, redistest.NewClient(t, s.Addr))
			}
			q, err := redis.NewQuorum(clients, &redis.Options{Plain: true, Unguarded: true, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeWithin(t, q) })
			return q
		}
		conformance.Run(t, exempt(conformance.Harness{
			New:      client,
			Peer:     func(t testing.TB, _ backend.Backend) backend.Backend { return client(t) },
			Unfenced: true,
		}, f))
	})
}

// The least that doc/wire.md asks for is enough, and no script is sent.
func TestPlainNeedsNoScriptsAndKeepsNothingButTheLock(t *testing.T) {
	onReal(t, func(t *testing.T, s *redistest.Server) {
		admin, ctx := s.Client(), t.Context()
		rules := strings.Fields("acl setuser app on nopass resetkeys ~k resetchannels &distmutex:* -@all +set +get +pttl +pexpire +del " +
			"+watch +unwatch +multi +exec +publish +subscribe +unsubscribe +ping +hello +client +info")
		var args []any
		for _, r := range rules {
			args = append(args, r)
		}
		if name := deleter(s.Flavour); name != "" {
			args = append(args, "+"+name)
		}
		if err := admin.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
		b := newPlain(t, worst(t, s.Addr, func(o *goredis.Options) { o.Username, o.Password = "app", "any" }))
		admin.ConfigResetStat(ctx)
		want := lease("k", 10*time.Second)
		held := mustAcquirePlainly(t, b, want)
		mustAcquirePlainly(t, b, want)
		if err := b.Renew(ctx, held); err != nil {
			t.Error(err)
		}
		if seen, err := b.Acquire(ctx, lease("k", time.Second)); !errors.Is(err, backend.ErrHeld) || seen.TTL <= 0 || seen.TTL > 10*time.Second {
			t.Errorf("got %v with %v left, want ErrHeld with up to 10s", err, seen.TTL)
		}
		woken := make(chan error)
		go func() { _, err := b.Wait(ctx, lease("k", time.Second)); woken <- err }()
		eventually(t, "the waiter listens", func() bool { return b.Listening("k") })
		mustRelease(t, b, held)
		if err := <-woken; err != nil {
			t.Errorf("wait: %v", err)
		}
		if keys := admin.Keys(ctx, "*").Val(); len(keys) != 0 {
			t.Errorf("there are %q", keys)
		}
		for name := range stats(t, admin) {
			if strings.HasPrefix(name, "eval") || strings.HasPrefix(name, "script") || strings.HasPrefix(name, "fcall") {
				t.Errorf("the server ran %s", name)
			}
		}
		wantStats(t, admin, map[redistest.Flavour]map[string]int{ // one to ask whether a command is there
			redistest.Redis7:  {"watch": 3, "exec": 3, "del": 1, "pexpire": 2},
			redistest.Redis8:  {"watch": 2, "exec": 2, "del": 0, "pexpire": 2, "delex": 2},
			redistest.Valkey9: {"watch": 0, "exec": 0, "del": 0, "pexpire": 0, "delifeq": 2},
		}[s.Flavour])
	})
}

func mustAcquirePlainly(t *testing.T, b backend.Backend, want backend.Lease) backend.Lease {
	t.Helper()
	got, err := b.Acquire(t.Context(), want)
	if err != nil || got.Owner != want.Owner || got.Key != want.Key || got.TTL != want.TTL || got.Token != 0 {
		t.Fatalf("acquire: got %v with term %v, token %d; want a grant for %v without one", err, got.TTL, got.Token, want.TTL)
	}
	return got
}

func TestPlainRefusesTokensThatItCantGive(t *testing.T) {
	b := newPlain(t, worst(t, "127.0.0.1:1"))
	l := lease("k", time.Second)
	l.Token = 1
	var e *backend.InvalidError
	if _, err := b.Acquire(t.Context(), l); !errors.As(err, &e) || e.Field != "Token" {
		t.Errorf("got %v, want an InvalidError of Token", err)
	}
	e = nil
	clients := []goredis.UniversalClient{worst(t, "127.0.0.1:1"), worst(t, "127.0.0.1:2"), worst(t, "127.0.0.1:3")}
	if _, err := redis.NewQuorum(clients, &redis.Options{Plain: true}); !errors.As(err, &e) || e.Field != "Plain" {
		t.Errorf("a guarded quorum: got %v, want an InvalidError of Plain", err)
	}
}

// A key that is ours may end at any time: it counts once it was renewed.
func TestPlainAcquireOfOnesOwnKeyStartsItsTermAnew(t *testing.T) {
	bothWays(t, func(t *testing.T, s *redistest.Server, edit func(*goredis.Client) *goredis.Client) {
		b := newPlain(t, edit(redistest.NewClient(t, s.Addr)))
		want := lease("k", 5*time.Second)
		mustAcquirePlainly(t, b, want)
		startsAnew(t, s.Client(), func() { mustAcquirePlainly(t, b, want) })
		mustRelease(t, b, want)
	})
}
