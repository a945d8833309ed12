package redis_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/redistest"
)

// everywhere runs a test on every real server, and on miniredis beside them.
func everywhere(t *testing.T, test func(t *testing.T, s *redistest.Server)) {
	everyFlavour(t, func(t *testing.T, f redistest.Flavour) { test(t, redistest.Start(t, f, 1)[0]) })
}

func everyFlavour(t *testing.T, test func(t *testing.T, f redistest.Flavour)) {
	t.Parallel()
	redistest.Each(t, test)
	if !slices.Contains(redistest.Flavours(), redistest.Miniredis) {
		t.Run(string(redistest.Miniredis), func(t *testing.T) { test(t, redistest.Miniredis) })
	}
}

// inTurn says whether the n-th of the long runs that flavours share out is this
// one's: what is tried in it is much the same on all.
func inTurn(f redistest.Flavour, n int) bool {
	all := redistest.Flavours()
	return all[n%len(all)] == f
}

// real runs a test on real servers that it may kill and freeze.
func real(t *testing.T, test func(t *testing.T, s *redistest.Server), args ...string) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		test(t, redistest.Start(t, f, 1, args...)[0])
	})
}

// worst is a client with go-redis's own defaults: it sends again what got no
// answer, and ignores the end of a context.
func worst(t *testing.T, addr string, edits ...func(*goredis.Options)) *goredis.Client {
	t.Helper()
	o := &goredis.Options{Addr: addr}
	for _, edit := range edits {
		edit(o)
	}
	c := goredis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func newBackend(t *testing.T, c goredis.UniversalClient) *redis.Backend {
	t.Helper()
	return silent(t, c, redis.Options{})
}

// unordered is a backend whose waiters get hints.
func unordered(t *testing.T, c goredis.UniversalClient) *redis.Backend {
	t.Helper()
	return silent(t, c, redis.Options{Unordered: true})
}

// silent is a backend that logs nothing. It leaves the client open.
func silent(t testing.TB, c goredis.UniversalClient, o redis.Options) *redis.Backend {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	b, err := redis.New(c, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeWithin(t, b) })
	return b
}

func closeWithin(t testing.TB, b redis.Closer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// exempt allows for the simulation, which may end a key early by as much as the
// test's process is held up: what has to last is not checked on it where real
// servers are, and with long terms where there is nothing else.
func exempt(h conformance.Harness, f redistest.Flavour) conformance.Harness {
	if f == redistest.Miniredis {
		h.NoExpiry = !slices.Contains(redistest.Flavours(), redistest.Miniredis)
		h.Term = 2 * time.Second
	}
	return h
}

// lease is one attempt from now on.
func lease(key string, ttl time.Duration) backend.Lease {
	return backend.Lease{Key: key, Owner: crand.Text(), TTL: ttl, Start: time.Now()}
}

func mustAcquire(t *testing.T, b backend.Backend, want backend.Lease) backend.Lease {
	t.Helper()
	got, err := b.Acquire(t.Context(), want)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	if got.Key != want.Key || got.Owner != want.Owner || got.TTL != want.TTL || got.Token <= 0 {
		t.Fatalf("acquire: got key %q, term %v, token %d for %q, %v", got.Key, got.TTL, got.Token, want.Key, want.TTL)
	}
	return got
}

func mustRelease(t *testing.T, b backend.Backend, held backend.Lease) {
	t.Helper()
	if err := b.Release(t.Context(), held); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// insist repeats a call whose outcome is unknown, until it is known.
func insist(t *testing.T, call func() error) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := call()
		if err == nil || errors.Is(err, backend.ErrHeld) || errors.Is(err, backend.ErrLost) || time.Now().After(deadline) || t.Context().Err() != nil {
			return err
		}
	}
}

// mustInsist acquires, over and over while the outcome is unknown.
func mustInsist(t *testing.T, b backend.Backend, want backend.Lease) backend.Lease {
	t.Helper()
	var got backend.Lease
	err := insist(t, func() (err error) {
		got, err = b.Acquire(t.Context(), want)
		return err
	})
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return got
}

// locks lists the keys on the server that are neither counters nor tombstones.
func locks(t *testing.T, c goredis.Cmdable) []string {
	t.Helper()
	keys, err := c.Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, "distmutex:") })
}

// eventually waits for what must come soon, and says so if it does not.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
