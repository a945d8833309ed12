package redis_test

import (
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

func sentinels(t *testing.T, test func(t *testing.T, s *redistest.Sentinels)) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		test(t, redistest.StartSentinels(t, f, 1, 3))
	})
}

// behind is a backend of a client with go-redis's own defaults.
func behind(t testing.TB, s *redistest.Sentinels) *redis.Backend {
	return over(t, goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: redistest.Watched, SentinelAddrs: redistest.Addrs(s.Sentinels)}))
}

func sentinelURL(s *redistest.Sentinels, name string) string {
	return "redis+sentinel://127.0.0.1:1," + strings.Join(redistest.Addrs(s.Sentinels), ",") + "/" + name
}

func TestPrimaryBehindSentinelsAsOneNode(t *testing.T) {
	sentinels(t, func(t *testing.T, s *redistest.Sentinels) {
		conformOf(t, 2, s.Primary.Flavour, func(t testing.TB) *redis.Backend { return behind(t, s) })
		t.Run("Open", func(t *testing.T) { opensSentinels(t, s) })
		t.Run("IsDemoted", func(t *testing.T) { isDemoted(t, s) })
	})
}

func TestSentinelFailover(t *testing.T) {
	sentinels(t, func(t *testing.T, s *redistest.Sentinels) {
		forgets(t, behind(t, s), "kept", "lost", s.Primary, s.Replicas[0], func() {
			s.Hurry()
			s.AwaitPromotion()
		})
	})
}

func opensSentinels(t *testing.T, s *redistest.Sentinels) {
	b, err := open(t, nil, sentinelURL(s, redistest.Watched+"/0"))
	if err != nil {
		t.Fatal(err)
	}
	if name := b.(*redis.Backend).Name(); !strings.HasPrefix(name, redistest.Watched+" behind 127.0.0.1:1,") {
		t.Errorf("got the name %q", name)
	}
	mustRelease(t, b, mustAcquire(t, b, lease("opened", time.Second)))
	if _, err := open(t, nil, sentinelURL(s, "another")); err == nil || !strings.Contains(err.Error(), "know no primary") {
		t.Errorf("another name: got %v", err)
	}
	for _, w := range s.Sentinels {
		if err := w.Client().Do(t.Context(), "acl", "setuser", "guest", "on", ">hush", "&*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Primary.Client().Do(t.Context(), "acl", "setuser", "app", "on", ">p@ss", "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	u := strings.Replace(sentinelURL(s, redistest.Watched), "://", "://app:p%40ss@", 1)
	if _, err := open(t, nil, u+"?sentinel_username=guest&sentinel_password=hush"); err != nil {
		t.Errorf("both with passwords: %v", err)
	}
	wrong := strings.Replace(u, "p%40ss", "sesame", 1)
	for _, u := range []string{u + "?sentinel_username=guest&sentinel_password=sesame", wrong} {
		if _, err := open(t, nil, u); err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("a wrong password: got %v, want WRONGPASS and no password", err)
		}
	}
}

// A failover on request, in which the old primary lives on as a replica.
func isDemoted(t *testing.T, s *redistest.Sentinels) {
	b, ctx := behind(t, s), t.Context()
	held := mustAcquire(t, b, lease("held", 30*time.Second))
	old, sentinel := s.Primary.Client(), s.Sentinels[0].Client()
	eventually(t, "the sentinels begin", func() bool { return sentinel.Do(ctx, "sentinel", "failover", redistest.Watched).Err() == nil })
	demoted := func() bool {
		role, ok := old.Do(ctx, "role").Val().([]any) // the failover ends connections
		return ok && role[0] == "slave"
	}
	eventually(t, "the old primary is a replica, and its successor is used", func() bool {
		was := demoted()
		l := lease("free", 500*time.Millisecond)
		if err := insist(t, func() error { _, err := b.Acquire(ctx, l); return err }); errors.Is(err, backend.ErrHeld) {
			return false // a release was forgotten, too; the term ends it
		}
		_ = insist(t, func() error { return b.Release(ctx, l) })
		return was && s.Promoted() != s.Primary.Addr
	})
	if err := insist(t, func() error { return b.Renew(ctx, held) }); err != nil {
		t.Errorf("renew: %v", err)
	}
	last := mustInsist(t, b, lease("last", 20*time.Second))
	if got := locks(t, s.Replicas[0].Client()); !slices.Contains(got, "last") {
		t.Errorf("the new primary has %q", got)
	}
	mustRelease(t, b, last)
	if _, err := b.Identity(ctx); err != nil {
		t.Errorf("identity: %v", err)
	}
	if _, err := redis.Open(ctx, &redis.Options{Logger: slog.New(slog.DiscardHandler)}, "redis://"+s.Primary.Addr); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("the old primary by its address: got %v", err)
	}
}
