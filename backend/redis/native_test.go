package redis_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// stats is how often the server ran each command since they were reset.
func stats(t *testing.T, c *goredis.Client) map[string]int {
	t.Helper()
	info, err := c.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for line := range strings.Lines(info) {
		var n int
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":"); ok {
			if _, err := fmt.Sscanf(rest, "calls=%d,", &n); err == nil && n > 0 {
				calls[name] = n
			}
		}
	}
	return calls
}

// onReal runs a test on every real server: a simulation keeps no statistics.
func onReal(t *testing.T, test func(t *testing.T, s *redistest.Server)) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsReal(t, f)
		test(t, redistest.Start(t, f, 1)[0])
	})
}

// wantStats checks how often the server ran some commands.
func wantStats(t *testing.T, c *goredis.Client, want map[string]int) {
	t.Helper()
	got := stats(t, c)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("the server ran %s %d times, want %d; it ran %v", name, got[name], want[name], got)
		}
	}
}

// deleter is the command by which a server releases, other than by a script.
func deleter(f redistest.Flavour) string {
	return map[redistest.Flavour]string{redistest.Redis8: "delex", redistest.Valkey9: "delifeq"}[f]
}

func TestRenewAndReleaseAreNativeWhereTheServerHasIt(t *testing.T) {
	onReal(t, func(t *testing.T, s *redistest.Server) {
		b, admin := unordered(t, worst(t, s.Addr)), s.Client()
		warm(t, b)
		admin.ConfigResetStat(t.Context())
		const n = 10
		for range n {
			held := mustAcquire(t, b, lease("k", time.Second))
			if err := b.Renew(t.Context(), held); err != nil {
				t.Error(err)
			}
			mustRelease(t, b, held)
		}
		wantStats(t, admin, map[redistest.Flavour]map[string]int{
			redistest.Redis7:  {"evalsha": 3 * n, "eval": 0, "del": n, "publish": n, "set": 2 * n, "getex": 0},
			redistest.Redis8:  {"evalsha": 2 * n, "eval": 0, "del": 0, "publish": n, "set": 2 * n, "getex": 0, "delex": n},
			redistest.Valkey9: {"evalsha": n, "eval": 0, "del": 0, "publish": n, "set": 3 * n, "getex": n, "delifeq": n, "pexpire": 0},
		}[s.Flavour])
	})
}

// A script has to say what a native command can't.
func TestReleaseIsAScriptWhereATombstoneOrAVerdictIsNeeded(t *testing.T) {
	onReal(t, func(t *testing.T, s *redistest.Server) {
		b, admin, ctx := newBackend(t, s.Client()), s.Client(), t.Context()
		warm(t, b)
		admin.ConfigResetStat(ctx)
		held := mustAcquire(t, b, lease("k", 10*time.Second))
		untold := held
		untold.Token = 0
		mustRelease(t, b, untold)
		wantStats(t, admin, map[string]int{"evalsha": 2, "zadd": 1, "delex": 0, "delifeq": 0})

		next := mustAcquire(t, b, lease("k", 10*time.Second))
		if err := b.Release(ctx, held); !errors.Is(err, backend.ErrLost) {
			t.Errorf("of what is another's: got %v, want ErrLost", err)
		}
		mustRelease(t, b, next)
		mustRelease(t, b, next) // repeated
		if err := b.Renew(ctx, next); !errors.Is(err, backend.ErrLost) {
			t.Errorf("renewal of what was released: got %v, want ErrLost", err)
		}
	})
}

// A renewal succeeds only with the counter at the token, natively too.
func TestNativeRenewalAssertsTheToken(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b, c, ctx := newBackend(t, s.Client()), s.Client(), t.Context()
		held := mustAcquire(t, b, lease("k", 10*time.Second))
		for _, counter := range []string{"", "7", fmt.Sprint(int64(held.Token) + 5)} {
			c.Set(ctx, redis.CounterKey("k"), counter, time.Minute)
			if counter == "" {
				c.Del(ctx, redis.CounterKey("k"))
			}
			if err := b.Renew(ctx, held); err != nil {
				t.Errorf("counter %q: %v", counter, err)
			}
			if got, _ := c.Get(ctx, redis.CounterKey("k")).Int64(); got < int64(held.Token) {
				t.Errorf("counter %q: after the renewal it is %d, below the token %d", counter, got, held.Token)
			}
			if got := c.PTTL(ctx, redis.CounterKey("k")).Val(); got < 24*time.Hour {
				t.Errorf("counter %q: it lives for %v, want a day beyond the term", counter, got)
			}
		}
		c.Set(ctx, redis.CounterKey("k"), "+1e3", time.Minute)
		if err := b.Renew(ctx, held); err == nil || errors.Is(err, backend.ErrLost) {
			t.Errorf("a counter that is none: got %v, want an error that is no verdict", err)
		}
	})
}

// One address leads to one server after the other, as after a failover in the
// middle of an upgrade. The first call after each change is that verb's.
func TestServerIsAskedAgainAfterAReconnect(t *testing.T) {
	t.Parallel()
	var servers []*redistest.Server
	for _, f := range []redistest.Flavour{redistest.Redis8, redistest.Redis7, redistest.Valkey9, redistest.Redis8, redistest.Valkey9, redistest.Redis7, redistest.Valkey9} {
		redistest.NeedsReal(t, f)
		servers = append(servers, redistest.Start(t, f, 1)[0])
	}
	var at atomic.Pointer[redistest.Server]
	seen := new(errorLog)
	c := worst(t, "127.0.0.1:1", func(o *goredis.Options) {
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", at.Load().Addr)
		}
	})
	c.AddHook(seen)
	b, ctx := unordered(t, c), t.Context()
	for i, s := range servers {
		before := at.Swap(s)
		if before != nil {
			before.Client().ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes")
		}
		old := lease("k", 10*time.Second)
		old.Token = 1
		if i%2 == 0 {
			if err := b.Release(ctx, old); err != nil {
				t.Errorf("release on %s: %v", s.Flavour, err)
			}
		} else if err := b.Renew(ctx, old); !errors.Is(err, backend.ErrLost) {
			t.Errorf("renew on %s: got %v, want ErrLost", s.Flavour, err)
		}
		for range 2 { // the first may find out, the second knows
			s.Client().ConfigResetStat(ctx)
			held := mustAcquire(t, b, lease("k", 10*time.Second))
			if err := b.Renew(ctx, held); err != nil {
				t.Errorf("renew on %s: %v", s.Flavour, err)
			}
			mustRelease(t, b, held)
			seen.wantWithout(t, held.Owner)
		}
		wantStats(t, s.Client(), map[redistest.Flavour]map[string]int{
			redistest.Redis7:  {"evalsha": 3, "getex": 0},
			redistest.Redis8:  {"evalsha": 2, "getex": 0, "delex": 1},
			redistest.Valkey9: {"evalsha": 1, "getex": 1, "delifeq": 1},
		}[s.Flavour])
		seen.wantWithout(t, old.Owner)
	}
}

// The user may lose and get back the right to a command at any time.
func TestCommandThatIsForbiddenMeanwhile(t *testing.T) {
	onReal(t, func(t *testing.T, s *redistest.Server) {
		admin, ctx := s.Client(), t.Context()
		rule := func(rules ...any) {
			t.Helper()
			if err := admin.Do(ctx, append([]any{"acl", "setuser", "app"}, rules...)...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		rule("on", "nopass", "~*", "&*", "+@all")
		b := newBackend(t, worst(t, s.Addr, func(o *goredis.Options) { o.Username, o.Password = "app", "any" }))
		held := mustAcquire(t, b, lease("k", 10*time.Second))
		for _, name := range []string{"getex", "set", deleter(s.Flavour), "publish"} {
			if name == "" {
				continue
			}
			if err := b.Renew(ctx, held); err != nil {
				t.Error(err)
			}
			rule("-" + name)
			if err := b.Renew(ctx, held); err != nil {
				t.Errorf("renew without %s: %v", name, err)
			}
			if name != "set" {
				mustRelease(t, b, held)
				held = mustAcquire(t, b, lease("k", 10*time.Second))
			}
			rule("+" + name)
		}
	})
}

// errorLog is a hook that keeps the errors that it sees.
type errorLog struct {
	goredis.Hook
	text atomic.Value
}

func (h *errorLog) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (h *errorLog) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		h.add(err, cmd.Err())
		return err
	}
}

func (h *errorLog) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		h.add(err)
		for _, cmd := range cmds {
			h.add(cmd.Err(), errors.New(cmd.String()))
		}
		return err
	}
}

func (h *errorLog) add(errs ...error) {
	before, _ := h.text.Load().(string)
	h.text.Store(before + fmt.Sprintln(errs))
}

func (h *errorLog) wantWithout(t *testing.T, owner string) {
	t.Helper()
	text, _ := h.text.Load().(string)
	if text == "" || strings.Contains(text, owner) {
		t.Errorf("a hook saw nothing at all, or the owner: %q", text)
	}
}

// A renewal that got no answer may come late, and would shorten the next one.
func TestLongerTermIsNotGrantedWhileAShortRenewalMayStillCome(t *testing.T) {
	behindProxy(t, func(t *testing.T, s *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
		if s.Flavour != redistest.Valkey9 {
			t.Skip("nothing to check: a script never shortens, and this server renews by scripts")
		}
		b, ctx := newBackend(t, redistest.NewClient(t, p.Addr)), t.Context()
		warm(t, b)
		held := mustAcquire(t, b, lease("k", 5*time.Second))
		lost := p.LoseReply(1, held.Owner)
		if err := b.Renew(ctx, held); err == nil {
			t.Fatal("the reply was not lost")
		}
		<-lost
		longer := held
		longer.TTL = 20 * time.Second
		if err := b.Renew(ctx, longer); err == nil || errors.Is(err, backend.ErrLost) {
			t.Errorf("longer: got %v, want an error that is no verdict", err)
		}
		if err := b.Renew(ctx, held); err != nil {
			t.Errorf("the same again: %v", err)
		}
		mustRelease(t, b, held)
		if n := b.Lanes(); n != 0 {
			t.Errorf("%d lanes stay", n)
		}
		if got := locks(t, direct); len(got) != 0 {
			t.Errorf("there are %q", got)
		}
	})
}
