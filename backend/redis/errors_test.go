package redis_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// wantCause checks that err is the server's own refusal, and nothing that
// mutex would take for an answer.
func wantCause(t *testing.T, op string, err error, text string) {
	t.Helper()
	var e *backend.Error
	switch {
	case !errors.As(err, &e) || e.Op != op || e.Key != "k" || e.Node == "":
		t.Errorf("%s: got %v, want an error that names verb, key and server", op, err)
	case errors.Is(err, backend.ErrHeld) || errors.Is(err, backend.ErrLost):
		t.Errorf("%s: %v is taken for an answer", op, err)
	case !strings.Contains(err.Error(), text):
		t.Errorf("%s: got %v, want one with %s", op, err, text)
	}
}

func TestWrongTypeAtTheKey(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, c)
		c.HSet(t.Context(), "k", "field", "value")
		for op, call := range verbs(b, lease("k", time.Second)) {
			wantCause(t, op, call(t.Context()), "WRONGTYPE")
		}
		if c.HGet(t.Context(), "k", "field").Val() != "value" {
			t.Error("the hash was changed")
		}
	})
}

func TestServerThatWantsAPassword(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c := worst(t, s.Addr)
		if err := s.Client().ConfigSet(t.Context(), "requirepass", "hush").Err(); err != nil {
			t.Fatal(err)
		}
		for op, call := range verbs(newBackend(t, c), lease("k", time.Second)) {
			want := "NOAUTH"
			if op != "renew" { // has more arguments than a server reads of a stranger
				want = "Protocol error: unauthenticated"
			}
			wantCause(t, op, call(t.Context()), want)
		}
		wrong := worst(t, s.Addr, func(o *goredis.Options) { o.Password = "loud"; o.Protocol = 2 })
		for op, call := range verbs(newBackend(t, wrong), lease("k", time.Second)) {
			err := call(t.Context())
			wantCause(t, op, err, "WRONGPASS")
			if strings.Contains(err.Error(), "loud") {
				t.Errorf("%s: the error has the password: %v", op, err)
			}
		}
	})
}

func TestUserWithoutPermission(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		admin, ctx := s.Client(), t.Context()
		user := func(name string, rules ...string) *redis.Backend {
			args := []any{"acl", "setuser", name, "on", "nopass", "resetkeys"}
			for _, r := range rules {
				args = append(args, r)
			}
			if err := admin.Do(ctx, args...).Err(); err != nil {
				t.Fatal(err)
			}
			return newBackend(t, worst(t, s.Addr, func(o *goredis.Options) { o.Username, o.Password = name, "any" }))
		}
		noScripts := user("noscripts", "~*", "&*", "+@all", "-evalsha", "-eval", "-set")
		noKeys := user("nokeys", "~other", "&*", "+@all")
		for _, b := range []*redis.Backend{noScripts, noKeys} {
			l := lease("k", time.Second)
			for op, call := range verbs(b, l) {
				err := call(ctx)
				wantCause(t, op, err, "NOPERM")
				if strings.Contains(err.Error(), l.Owner) {
					t.Errorf("%s: the error has the owner: %v", op, err)
				}
			}
		}
		// What doc/security.md asks for is enough, also without a channel.
		least := user("least", slices.Concat(scriptRights, lineRights, wakeRights, []string{"~k", "~distmutex:*", "resetchannels"})...)
		held := mustAcquire(t, least, lease("k", time.Second))
		if err := least.Renew(ctx, held); err != nil {
			t.Error(err)
		}
		w := lease("k", time.Second)
		if _, err := least.Wait(ctx, w); err != nil {
			t.Errorf("wait without a channel: %v", err)
		}
		mustRelease(t, least, w)
		if err := least.Release(ctx, held); err != nil && !errors.Is(err, backend.ErrLost) {
			t.Error(err)
		}
		if got := locks(t, admin); len(got) != 0 {
			t.Errorf("there are %q", got)
		}
	})
}

func TestServerThatTakesNoWrites(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, worst(t, s.Addr, func(o *goredis.Options) { o.MaxRetries = -1 }))
		acquire := func(prefix string) {
			t.Helper()
			l := lease("k", time.Second)
			_, err := b.Acquire(ctx, l)
			wantCause(t, "acquire", err, prefix)
			_ = b.Release(ctx, l)
			if got := locks(t, c); len(got) != 0 {
				t.Errorf("%s: there are %q", prefix, got)
			}
		}
		set := func(name, value string) {
			t.Helper()
			if err := c.ConfigSet(ctx, name, value).Err(); err != nil {
				t.Fatalf("config set %s %s: %v", name, value, err)
			}
		}
		t.Run("READONLY", func(t *testing.T) {
			c.Do(ctx, "replicaof", "127.0.0.1", "1")
			acquire("READONLY")
			c.Do(ctx, "replicaof", "no", "one")
		})
		t.Run("OOM", func(t *testing.T) {
			set("maxmemory", "1")
			acquire("OOM")
			set("maxmemory", "0")
		})
		t.Run("OOM after the grant", func(t *testing.T) {
			held := mustAcquire(t, b, lease("k", 5*time.Second))
			set("maxmemory", "1")
			if err := b.Renew(ctx, held); err != nil {
				t.Errorf("renew: %v", err)
			}
			mustRelease(t, b, held)
			set("maxmemory", "0")
		})
		t.Run("MISCONF", func(t *testing.T) {
			set("min-replicas-to-write", "1")
			acquire("NOREPLICAS")
			set("min-replicas-to-write", "0")
			// A snapshot can't be renamed to what is a folder.
			dump := filepath.Join(c.ConfigGet(ctx, "dir").Val()["dir"], "dump.rdb", "in the way")
			if err := os.MkdirAll(dump, 0o700); err != nil {
				t.Fatal(err)
			}
			set("save", "1 1")
			_ = c.Do(ctx, "bgsave").Err()
			eventually(t, "a snapshot fails", func() bool {
				return strings.Contains(c.Info(ctx, "persistence").Val(), "rdb_last_bgsave_status:err")
			})
			acquire("MISCONF")
			set("save", "")
		})
		mustRelease(t, b, mustAcquire(t, b, lease("k", time.Second)))
	})
}

func TestServerThatIsBusyWithAScript(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		warm(t, b)
		c.ConfigSet(ctx, "busy-reply-threshold", "10")
		looping := make(chan struct{})
		go func() {
			defer close(looping)
			endless := goredis.NewClient(&goredis.Options{Addr: s.Addr, MaxRetries: -1, ReadTimeout: -1})
			defer endless.Close()
			endless.Eval(context.Background(), "while true do end", nil)
		}()
		l := lease("k", time.Second)
		eventually(t, "the server is busy", func() bool { return goredis.HasErrorPrefix(c.Ping(ctx).Err(), "BUSY") })
		for op, call := range verbs(b, l) {
			wantCause(t, op, call(ctx), "BUSY")
		}
		c.ScriptKill(ctx)
		<-looping
		if got := locks(t, c); len(got) != 0 {
			t.Errorf("there are %q", got)
		}
	})
}

func TestServerThatIsLoadingItsData(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		// Each key takes the server a millisecond to load.
		if err := c.ConfigSet(ctx, "key-load-delay", "1000").Err(); err != nil {
			t.Skipf("not checked: this server can't be made to load slowly: %v", err)
		}
		pipe := c.Pipeline()
		for i := range 1000 {
			pipe.Set(ctx, "fill:"+time.Duration(i).String(), i, 0)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		c.ConfigSet(ctx, "loading-process-events-interval-bytes", "1024")
		reloaded := make(chan struct{})
		go func() {
			defer close(reloaded)
			slow := goredis.NewClient(&goredis.Options{Addr: s.Addr, MaxRetries: -1, ReadTimeout: -1})
			defer slow.Close()
			slow.Do(context.Background(), "debug", "reload")
		}()
		eventually(t, "the server is loading", func() bool { return goredis.HasErrorPrefix(c.Ping(ctx).Err(), "LOADING") })
		for op, call := range verbs(b, lease("k", time.Second)) {
			wantCause(t, op, call(ctx), "LOADING")
		}
		<-reloaded
	})
}
