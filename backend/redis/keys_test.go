package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// Cases 17 and 48.
func TestNothingStaysForEver(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		for _, key := range []string{"a", "b{t}c", "{", "}{", "{}", "distmutex:1:token"} {
			held := mustAcquire(t, b, lease(key, 10*time.Second))
			if err := b.Renew(ctx, held); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, b, held)
			held.Token = 0
			_ = b.Release(ctx, held) // leaves a tombstone
		}
		keys, err := c.Keys(ctx, "*").Result()
		if err != nil || len(keys) != 12 {
			t.Errorf("got %d keys, %v; want a counter and tombstones for each of 6 locks", len(keys), err)
		}
		for _, key := range keys {
			if c.PTTL(ctx, key).Val() <= 0 {
				t.Errorf("%q has no expiry", key)
			}
		}
	})
}

// Case 18, and what looks like it: keys that might be taken for side keys.
func TestKeysDoNotCollide(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, s.Client())
		odd := []string{
			"a", "{a}", "{a", "a}", "{a}b", "{a}{b}", "b{a}", "a{}b", "{}", "{}a", "}{", "{{a}}", " ", "é\xff", "A",
			"distmutex:1:token", "distmutex:1:token:{a}", "a:token", strings.Repeat("x", backend.MaxKey),
		}
		tokens := map[string]backend.Token{}
		for _, key := range odd {
			tokens[key] = mustAcquire(t, b, lease(key, 20*time.Second)).Token
		}
		for _, key := range odd {
			seen, err := b.Acquire(t.Context(), lease(key, time.Second))
			if !errors.Is(err, backend.ErrHeld) || seen.Token != tokens[key] {
				t.Errorf("key %q: got %v with token %d, want ErrHeld with %d", key, err, seen.Token, tokens[key])
			}
		}
	})
}

func TestSideKeysShareASlotAndAreDifferent(t *testing.T) {
	seen := map[string]string{}
	for _, key := range []string{"a", "{a}", "{a}b", "b{a}", "{a", "{a}\x01", "c{a}d}"} {
		for _, side := range []string{redis.CounterKey(key), redis.TombsKey(key), redis.WakeChannel(key)} {
			if other, ok := seen[side]; ok {
				t.Errorf("%q and %q have the same side key %q", key, other, side)
			}
			seen[side] = key
			if backend.ValidateKey(side) == nil {
				t.Errorf("the side key %q might be a lock", side)
			}
			if got, want := hashed(side), hashed(key); got != want {
				t.Errorf("a cluster hashes %q of %q by %q, want %q", side, key, got, want)
			}
		}
	}
}

// hashed is the part of a key that Redis Cluster hashes, as its specification
// words it.
func hashed(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}
