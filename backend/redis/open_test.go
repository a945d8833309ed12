package redis_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

func open(t *testing.T, o *redis.Options, urls ...string) (redis.Closer, error) {
	t.Helper()
	b, err := redis.Open(t.Context(), o, urls...)
	if err == nil {
		t.Cleanup(func() { b.Close(context.Background()) })
	}
	return b, err
}

func TestOpen(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b, err := open(t, nil, "redis://"+s.Addr+"/0")
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, b, mustAcquire(t, b, lease("k", time.Second)))
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if _, err := b.Acquire(t.Context(), lease("k", time.Second)); !errors.Is(err, goredis.ErrClosed) {
			t.Errorf("acquire after Close: %v", err)
		}
	})
}

func TestOpenOfASocketAndWithAPassword(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		admin := worst(t, s.Addr, func(o *goredis.Options) { o.Password = "p@ss" })
		dir := admin.ConfigGet(t.Context(), "dir").Val()["dir"]
		socket := "unix://:p%40ss@" + filepath.Join(dir, "s")
		for _, u := range []string{"redis://:p%40ss@" + s.Addr, "redis://default:p%40ss@" + s.Addr + "?max_retries=2", socket} {
			b, err := open(t, nil, u)
			if err != nil {
				t.Error(err)
				continue
			}
			mustRelease(t, b, mustAcquire(t, b, lease("k", time.Second)))
			if name := b.(*redis.Backend).Name(); strings.Contains(name, "p@ss") || name == "" {
				t.Errorf("got the name %q", name)
			}
		}
		var refused *backend.InvalidError
		if _, err := open(t, nil, "redis://:secret@"+s.Addr); err == nil || errors.As(err, &refused) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("a wrong password: got %v, want WRONGPASS and no password", err)
		}
	}, "--requirepass", "p@ss", "--unixsocket", "s")
}

func TestOpenRefusesWrongURLsWithoutTheirPasswords(t *testing.T) {
	t.Parallel()
	for _, u := range []string{
		"", "localhost:6379", "http://:sesame@host", "redis://:sesame@host:port", "redis://:ses/ame@host", "redis://u:ses ame@host",
		"redis://u:ses?ame@host", "redis://u:6ses?ame@host", "redis://u:1?sesame@host", "redis://u:1#sesame@host/x", "redis://u:ses%zzame@host", "redis://:sesame@host/db", "redis://:sesame@host/1/2",
		"redis://:sesame@host?read_timeout=sesame", "redis://:sesame@host?sesame=1", "unix://:sesame@", "sesame://host", "redis:sesame@host/x", "\x7fsesame",
		"redis://:sesame@host?pool_size=-99999999999", "redis+cluster://:sesame@host?pool_size=99999999999",
		"redis+cluster://", "redis+cluster://:ses/ame@host", "redis+cluster://:sesame@host/0", "redis+cluster://:sesame@a,,b", "redis+cluster://:sesame@a:1:2,b",
		"redis+cluster://:sesame@a?addr=sesame:1", "redis+cluster://:sesame@a?read_only=true", "redis+cluster://:sesame@a#sesame", "redis+cluster://u:ses%zzame@a", "unix+cluster://:sesame@a", "redis+sesame://a",
		"redis+sentinel://:sesame@a", "redis+sentinel://:sesame@a/", "redis+sentinel://:sesame@a/locks/", "redis+sentinel://:sesame@a/locks/sesame", "redis+sentinel://:sesame@a/locks/1/2",
		"redis+sentinel://u:1/sesame@a/locks", "redis+sentinel://:sesame@a/locks?route_by_latency=true", "redis+sentinel://a/locks?password=sesame", "redis+sentinel://a/locks?sesame=1", "redis+sentinel://:sesame@/locks",
	} {
		_, err := redis.Open(t.Context(), nil, "redis://127.0.0.1:1", u)
		var e *backend.InvalidError
		if !errors.As(err, &e) || e.Field != "urls[1]" {
			t.Errorf("%q: got %v, want an InvalidError of urls[1]", u, err)
		} else if s := err.Error(); strings.Contains(s, "sesame") || strings.Contains(s, "ses") || strings.Contains(s, "zz") {
			t.Errorf("%q: the error has a part of the password: %v", u, err)
		}
	}
	var e *backend.InvalidError
	if _, err := redis.Open(t.Context(), nil); !errors.As(err, &e) || e.Field != "urls" {
		t.Errorf("no URL: got %v", err)
	}
	if _, err := redis.Open(t.Context(), &redis.Options{MaxTTL: -1}, "redis://localhost:1"); !errors.As(err, &e) || e.Field != "MaxTTL" {
		t.Errorf("a wrong option: got %v", err)
	}
}

func FuzzURLErrorsHaveNoPassword(f *testing.F) {
	f.Add("sesame", "host:1")
	f.Add("%", "host")
	f.Add("a/b?c#d@e:f", "[::1]:0")
	f.Fuzz(func(t *testing.T, password, rest string) {
		marked := "\u00b6" + password // what no sentence of ours has by chance
		for _, u := range []string{"redis://u:" + marked + "@" + rest, "unix://u:" + url.QueryEscape(marked) + "@/" + rest, marked + rest,
			"redis+cluster://u:" + marked + "@" + rest, "redis+sentinel://u:" + marked + "@" + rest + "/locks", "redis+sentinel://u@" + rest + "/" + marked + "/x"} {
			c, err := redis.ClientFor(u)
			if err == nil {
				c.Close()
			} else if strings.Contains(err.Error(), "\u00b6") || strings.Contains(err.Error(), url.QueryEscape("\u00b6")) {
				t.Errorf("%q: the error has the password: %v", u, err)
			}
		}
	})
}

// An outage at the start is none of Open's business; a server that says no is.
func TestOpenWhileTheServerIsAway(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		var log logs
		o := &redis.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		s.Kill()
		b, err := open(t, o, "redis://"+s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), s.Addr) {
			t.Errorf("the log does not name the server: %s", log.String())
		}
		s.Restart()
		mustRelease(t, b, mustAcquire(t, b, lease("k", time.Second)))

		s.Client().Do(t.Context(), "replicaof", "127.0.0.1", "1")
		if _, err := open(t, o, "redis://"+s.Addr); err == nil || !strings.Contains(err.Error(), "replica") {
			t.Errorf("a replica: got %v", err)
		}
	})
}

func TestIdentity(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		first, err := b.Identity(ctx)
		if err != nil || len(first) != 40 {
			t.Errorf("got %q, %v; want a run_id of 40 digits", first, err)
		}
		if again, _ := b.Identity(ctx); again != first {
			t.Errorf("got %q, then %q", first, again)
		}
		s.Restart()
		if next, err := b.Identity(ctx); err != nil || next == first || next == "" {
			t.Errorf("after a restart: got %q, %v; want another", next, err)
		}
		c.ConfigSet(ctx, "maxmemory", "100mb")
		if _, err := b.Identity(ctx); err != nil {
			t.Errorf("a limit without eviction: %v", err)
		}
		c.ConfigSet(ctx, "maxmemory-policy", "volatile-lru")
		if _, err := b.Identity(ctx); err == nil || !strings.Contains(err.Error(), "volatile-lru") {
			t.Errorf("eviction: got %v", err)
		}
		c.Do(ctx, "replicaof", "127.0.0.1", "1")
		if _, err := b.Identity(ctx); err == nil || !strings.Contains(err.Error(), "replica") {
			t.Errorf("a replica: got %v", err)
		}
		s.Kill()
		if _, err := b.Identity(ctx); err == nil || !strings.Contains(err.Error(), s.Addr) {
			t.Errorf("no server: got %v", err)
		}
	})
}

func TestIdentityOfASimulationIsEmpty(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Miniredis, 1)[0]
	if id, err := newBackend(t, s.Client()).Identity(t.Context()); id != "" || err != nil {
		t.Errorf("got %q, %v; want nothing", id, err)
	}
}

func TestServerThatEvictsIsWarnedOfOnce(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		var log logs
		b, err := redis.New(s.Client(), &redis.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			mustRelease(t, b, mustAcquire(t, b, lease("k", time.Second)))
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.Count(log.String(), "allkeys-lru"); got != 1 {
			t.Errorf("%d warnings, want 1: %s", got, log.String())
		}
	}, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
}

// logs is a buffer for several goroutines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
