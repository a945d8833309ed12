package redis_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// The rights that doc/security.md lists.
var (
	scriptRights = strings.Fields("+evalsha +eval +get +set +del +pttl +pexpire +time +zscore +zadd +zremrangebyscore")
	lineRights   = strings.Fields("+zpopmin +zrange +zrank +zrem") // of one node that is not Unordered, beside those
	wakeRights   = strings.Fields("+publish +subscribe +unsubscribe +ping")
	guardRights  = strings.Fields("+info +script|load +dbsize")
	plainRights  = strings.Fields("+set +get +pttl +pexpire +watch +unwatch +multi +exec +del")
)

// mode is a way to use servers, and what a user needs for that.
type mode struct {
	rights []string
	plain  bool
	open   func(t testing.TB, servers []*redistest.Server, as func(*goredis.Options)) redis.Closer
	nodes  int
}

var modes = map[string]mode{
	"line":             {rights: slices.Concat(lineRights[:1], scriptRights), nodes: 1, open: alone(redis.Options{})},
	"scripts":          {rights: scriptRights, nodes: 1, open: alone(redis.Options{Unordered: true})},
	"plain":            {rights: plainRights, nodes: 1, open: alone(redis.Options{Plain: true}), plain: true},
	"guarded quorum":   {rights: slices.Concat(guardRights, scriptRights), nodes: 3, open: together(redis.Options{})},
	"unguarded quorum": {rights: slices.Concat([]string{"+info"}, scriptRights), nodes: 3, open: together(redis.Options{Unguarded: true})},
	"plain quorum":     {rights: slices.Concat([]string{"+info"}, plainRights), nodes: 3, open: together(redis.Options{Unguarded: true, Plain: true}), plain: true},
}

func alone(o redis.Options) func(testing.TB, []*redistest.Server, func(*goredis.Options)) redis.Closer {
	o.Logger = slog.New(slog.DiscardHandler)
	return func(t testing.TB, s []*redistest.Server, as func(*goredis.Options)) redis.Closer {
		return asUser(t, s[0], &o, as)
	}
}

func together(o redis.Options) func(testing.TB, []*redistest.Server, func(*goredis.Options)) redis.Closer {
	o.Logger = slog.New(slog.DiscardHandler)
	return func(t testing.TB, s []*redistest.Server, as func(*goredis.Options)) redis.Closer {
		return strangers(t, redistest.Addrs(s), &o, as)
	}
}

func asUser(t testing.TB, s *redistest.Server, o *redis.Options, as func(*goredis.Options)) *redis.Backend {
	client := &goredis.Options{Addr: s.Addr}
	as(client)
	if o == nil {
		o = &redis.Options{Logger: slog.New(slog.DiscardHandler)}
	}
	return overWith(t, goredis.NewClient(client), o)
}

// user makes a user on all servers who may do what rights say, and no more.
func user(t testing.TB, servers []*redistest.Server, rights ...string) func(*goredis.Options) {
	t.Helper()
	args := []any{"acl", "setuser", "app", "reset", "on", ">p@ss"}
	for _, r := range rights {
		args = append(args, r)
	}
	for _, s := range servers {
		if err := s.Client().Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return func(o *goredis.Options) {
		o.Username, o.Password, o.MaxRetries = "app", "p@ss", -1
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
}

// Each flavour has commands of its own for a lock, so scripts are tried on all; the
// other modes take turns. TestEachRightIsNeeded goes through all of them everywhere.
func TestLeastRightsAreEnough(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		for i, name := range []string{"line", "plain", "guarded quorum", "scripts"} {
			if i == 0 || inTurn(f, i) {
				t.Run(name, func(t *testing.T) { modes[name].enough(t, f) })
			}
		}
	})
}

func (m mode) enough(t *testing.T, f redistest.Flavour) {
	redistest.NeedsReal(t, f)
	servers := redistest.Start(t, f, m.nodes)
	as := user(t, servers, slices.Concat(m.rights, lineRights, wakeRights, []string{"~*", "&distmutex:1:wake*"})...)
	if err := declareAll(t, m.open(t, servers, as)); err != nil {
		t.Fatal(err)
	}
	conformAs(t, f, m.plain, func(t testing.TB) backend.Backend { return m.open(t, servers, as) })
}

// declareAll makes the servers of a quorum count at once.
func declareAll(t testing.TB, b redis.Closer) error {
	t.Helper()
	if q, ok := b.(*redis.Quorum); ok {
		return q.DeclareNew(t.Context())
	}
	return nil
}

// drive does all that there is to do with a lock, and lists what went wrong. The
// only definite answer that is right is that a held lock is held.
func drive(t *testing.T, b redis.Closer) []error {
	t.Helper()
	ctx := t.Context()
	errs := []error{declareAll(t, b)}
	want, other := lease("k", 10*time.Second), lease("k", 10*time.Second)
	held, err := b.Acquire(ctx, want)
	errs = append(errs, err)
	if err == nil {
		errs = append(errs, b.Renew(ctx, held))
		if _, err = b.Acquire(ctx, other); err == nil {
			t.Error("two hold the lock")
		} else if !errors.Is(err, backend.ErrHeld) {
			errs = append(errs, err)
		}
		errs = append(errs, b.Release(ctx, other), b.Release(ctx, held))
	} else {
		errs = append(errs, b.Release(ctx, want))
	}
	for _, err := range errs {
		if errors.Is(err, backend.ErrHeld) || errors.Is(err, backend.ErrLost) {
			t.Errorf("a refusal is taken for an answer: %v", err)
		}
	}
	return errs
}

// refusal says whether a server refused for want of a right. What a script may
// not do, and what a transaction may not, servers word in their own ways.
func refusal(err error) bool {
	return err != nil && slices.ContainsFunc([]string{
		"NOPERM", "ACL failure in script", "can't run this command or subcommand script", "EXECABORT",
	}, func(words string) bool { return strings.Contains(err.Error(), words) })
}

// The patterns keep a user to the locks that begin with app:, and to what is kept
// beside them.
func TestPatternsKeepAUserToItsLocks(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsReal(t, f)
		servers := redistest.Start(t, f, 1)
		as := user(t, servers, slices.Concat(scriptRights, wakeRights, []string{"~app:*", "~distmutex:1:*{app:*", "&distmutex:1:wake*{app:*"})...)
		b := asUser(t, servers[0], &redis.Options{Unordered: true, Logger: slog.New(slog.DiscardHandler)}, as)
		held := mustAcquire(t, b, lease("app:job", 20*time.Second))
		waits := waiting(t, b, t.Context(), "app:job")
		eventually(t, "the waiter listens", func() bool { return b.Hears("app:job") })
		mustRelease(t, b, held)
		if err := <-waits; err != nil {
			t.Errorf("wait: %v", err)
		}
		if _, err := b.Acquire(t.Context(), lease("other:job", time.Second)); !refusal(err) {
			t.Errorf("another's lock: got %v, want a refusal", err)
		}
		c := goredis.NewClient(optionsOf(servers[0], as))
		defer c.Close()
		if err := c.Set(t.Context(), redis.CounterKey("other:job"), 1, 0).Err(); !refusal(err) {
			t.Errorf("another's counter: got %v, want a refusal", err)
		}
	})
}

func optionsOf(s *redistest.Server, as func(*goredis.Options)) *goredis.Options {
	o := &goredis.Options{Addr: s.Addr}
	as(o)
	return o
}
