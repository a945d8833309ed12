package redis_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/redistest"
)

func clusters(t *testing.T, masters, replicas int, test func(t *testing.T, c *redistest.Cluster)) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		test(t, redistest.StartCluster(t, f, masters, replicas))
	})
}

// overCluster is a backend of a client with go-redis's own defaults.
func overCluster(t testing.TB, c *redistest.Cluster) *redis.Backend {
	return over(t, goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: redistest.Addrs(c.Masters)}))
}

// over is a backend that ends with the test, and its client with it.
func over(t testing.TB, client goredis.UniversalClient) *redis.Backend {
	t.Helper()
	return overWith(t, client, &redis.Options{Logger: slog.New(slog.DiscardHandler)})
}

func overWith(t testing.TB, client goredis.UniversalClient, o *redis.Options) *redis.Backend {
	t.Helper()
	b, err := redis.New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closeWithin(t, b)
		client.Close()
	})
	return b
}

// conformOf runs the suite, if it is this flavour's turn.
func conformOf(t *testing.T, turn int, f redistest.Flavour, client func(testing.TB) *redis.Backend) {
	if !inTurn(f, turn) {
		return
	}
	t.Run("Conformance", func(t *testing.T) {
		conformAs(t, f, false, func(t testing.TB) backend.Backend { return client(t) })
	})
}

func conformAs(t *testing.T, f redistest.Flavour, unfenced bool, client func(testing.TB) backend.Backend) {
	conformance.Run(t, exempt(conformance.Harness{
		New:      client,
		Peer:     func(t testing.TB, _ backend.Backend) backend.Backend { return client(t) },
		Unfenced: unfenced,
	}, f))
}

func TestClusterAsOneNode(t *testing.T) {
	clusters(t, 3, 0, func(t *testing.T, c *redistest.Cluster) {
		conformOf(t, 0, c.Masters[0].Flavour, func(t testing.TB) *redis.Backend { return overCluster(t, c) })
		t.Run("HashTags", func(t *testing.T) { hashTags(t, overCluster(t, c)) })
		t.Run("Wakes", func(t *testing.T) { wakesOnAllNodes(t, c) })
		t.Run("Open", func(t *testing.T) { opensCluster(t, c) })
		t.Run("MovesASlot", func(t *testing.T) { movesASlot(t, c) })
		t.Run("MovesASlotAtonce", func(t *testing.T) { movesASlotAtonce(t, c) })
	})
}

// All that is kept of a lock is in one slot, whatever its key.
func hashTags(t *testing.T, b *redis.Backend) {
	for _, key := range []string{"plain", "{tag}", "{tag}k", "k{tag}", "a{b}{c}", "{open", "{{x}}", "a{b}c}", "a}b", "{}k", "}{"} {
		held := mustAcquire(t, b, lease(key, 20*time.Second))
		if err := b.Renew(t.Context(), held); err != nil {
			t.Errorf("%q: renew: %v", key, err)
		}
		if _, err := b.Acquire(t.Context(), lease(key, time.Second)); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("%q: got %v, want ErrHeld", key, err)
		}
		mustRelease(t, b, held)
		if next := mustAcquire(t, b, lease(key, time.Second)); next.Token <= held.Token {
			t.Errorf("%q: token %d came after %d", key, next.Token, held.Token)
		}
	}
}

// Releases wake waiters wherever the key is: servers of a cluster pass messages
// on, so that one connection hears all.
func wakesOnAllNodes(t *testing.T, c *redistest.Cluster) {
	b, other := overCluster(t, c), overCluster(t, c)
	for _, master := range c.Masters {
		wakes(t, b, other, keyOn(t, c, master))
	}
}

// wakes checks that a release ends a Wait in much less than the shortest poll,
// which is a second: of some tries, one at least, however busy the machine is.
func wakes(t *testing.T, b, other *redis.Backend, key string) {
	t.Helper()
	var took time.Duration
	for range 20 {
		held := mustAcquire(t, b, lease(key, 20*time.Second))
		done := waiting(t, other, t.Context(), key)
		eventually(t, "the waiter listens", func() bool { return other.Hears(key) })
		began := time.Now()
		mustRelease(t, b, held)
		if err := <-done; err != nil {
			t.Fatalf("wait: %v", err)
		}
		if took = time.Since(began); took < 500*time.Millisecond {
			t.Logf("%q: woken after %v", key, took)
			return
		}
	}
	t.Errorf("%q: nobody was woken, the last after %v", key, took)
}

// keyOn is a key that a master has.
func keyOn(t *testing.T, c *redistest.Cluster, master *redistest.Server) string {
	t.Helper()
	for i := range 1000 {
		if key := fmt.Sprintf("lock:%d", i); c.Owner(key) == master {
			return key
		}
	}
	t.Fatalf("no key on %s", master.Addr)
	return ""
}

func opensCluster(t *testing.T, c *redistest.Cluster) {
	addrs := redistest.Addrs(c.Masters)
	b, err := open(t, nil, "redis+cluster://127.0.0.1:1,"+strings.Join(addrs, ",")+"?max_redirects=4")
	if err != nil {
		t.Fatal(err)
	}
	held := mustAcquire(t, b, lease("opened", time.Second))
	if _, err := overCluster(t, c).Acquire(t.Context(), lease("opened", time.Second)); !errors.Is(err, backend.ErrHeld) {
		t.Errorf("another client: got %v, want ErrHeld", err)
	}
	mustRelease(t, b, held)
	if name := b.(*redis.Backend).Name(); !strings.Contains(name, addrs[0]) {
		t.Errorf("got the name %q", name)
	}
	if _, err := open(t, nil, "redis+cluster://u:sesame@"+addrs[0]); err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "sesame") {
		t.Errorf("a wrong password: got %v", err)
	}
}
