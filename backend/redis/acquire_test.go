package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

func TestLockIsAPlainString(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		held := mustAcquire(t, b, lease("orders/42", 20*time.Second))
		if got := c.Get(ctx, "orders/42").Val(); got != held.Owner {
			t.Error("the value of the key is not the owner")
		}
		if got := c.PTTL(ctx, "orders/42").Val(); got < 15*time.Second || got > 20*time.Second {
			t.Errorf("got a term of %v, want 20s", got)
		}
		if got := c.PTTL(ctx, redis.CounterKey("orders/42")).Val(); got < 24*time.Hour {
			t.Errorf("got a counter that lives for %v, want a day beyond the term", got)
		}
		mustRelease(t, b, held)
		if got := locks(t, c); len(got) != 0 {
			t.Errorf("after the release there are %q", got)
		}
	})
}

func TestPlainRedlockClientsExcludeAndAreExcluded(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		const del = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

		held := mustAcquire(t, b, lease("k", 10*time.Second))
		if ok := c.SetNX(ctx, "k", "plain", time.Second).Val(); ok {
			t.Error("a plain client got a key that is held")
		}
		if n, _ := c.Eval(ctx, del, []string{"k"}, "plain").Int(); n != 0 {
			t.Error("a plain client released our lock")
		}
		mustRelease(t, b, held)

		if ok := c.SetNX(ctx, "k", "plain", 5*time.Second).Val(); !ok {
			t.Fatal("a plain client did not get a free key")
		}
		seen, err := b.Acquire(ctx, lease("k", 10*time.Second))
		if !errors.Is(err, backend.ErrHeld) || seen.TTL <= 0 || seen.TTL > 5*time.Second || seen.Token != held.Token || seen.Owner != "" {
			t.Errorf("got %v, %v left, token %d; want ErrHeld, 5s, %d", err, seen.TTL, seen.Token, held.Token)
		}
		if err := b.Release(ctx, held); !errors.Is(err, backend.ErrLost) { // Cases 36 and 38.
			t.Errorf("release of what a plain client holds: got %v, want ErrLost", err)
		}
		if n, _ := c.Eval(ctx, del, []string{"k"}, "plain").Int(); n != 1 {
			t.Error("a plain client could not release its own lock")
		}
		next := mustAcquire(t, b, lease("k", 10*time.Second))
		if next.Token <= held.Token {
			t.Errorf("token %d after %d", next.Token, held.Token)
		}
	})
}

func TestRepeatedAcquireIsOneAcquire(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		want := lease("k", 5*time.Second)
		first := mustAcquire(t, b, want)

		c.PExpire(ctx, "k", time.Second)
		if again := mustAcquire(t, b, want); again.Token != first.Token {
			t.Errorf("the token moved from %d to %d", first.Token, again.Token)
		}
		if left := c.PTTL(ctx, "k").Val(); left < 2*time.Second {
			t.Errorf("the term did not start anew: %v left", left)
		}
		c.PExpire(ctx, "k", 20*time.Second)
		mustAcquire(t, b, want)
		if left := c.PTTL(ctx, "k").Val(); left < 15*time.Second {
			t.Errorf("the term was shortened: %v left", left)
		}
		c.Persist(ctx, "k")
		mustAcquire(t, b, want)
		if left := c.PTTL(ctx, "k").Val(); left <= 0 {
			t.Error("the key has no expiry")
		}
		late := want
		late.Start = want.Start.Add(2 * time.Second) // a caller that does not keep Start
		if again := mustAcquire(t, b, late); again.Token != first.Token {
			t.Errorf("a clock moved the token from %d to %d", first.Token, again.Token)
		}
	})
}

func TestRaiseMovesTheTokenAndIsNotClamped(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, s.Client())
		want := lease("k", 5*time.Second)
		first := mustAcquire(t, b, want)

		raise := want
		for _, floor := range []backend.Token{first.Token - 1, first.Token, first.Token + 1, first.Token + 1e9, 1<<52 + 1, 1<<53 - 2} {
			raise.Token = floor
			if got := mustAcquire(t, b, raise); got.Token != max(floor, first.Token) {
				t.Errorf("floor %d: got %d", floor, got.Token)
			}
		}
		raise.Token = 1
		last := mustAcquire(t, b, raise)
		if last.Token != 1<<53-2 {
			t.Errorf("a smaller floor lowered the token to %d", last.Token)
		}
		mustRelease(t, b, last)
		for want := last.Token + 1; want <= backend.MaxToken; want++ {
			next := mustAcquire(t, b, lease("k", time.Second))
			if next.Token != want {
				t.Errorf("got token %d, want %d", next.Token, want)
			}
			if err := b.Renew(t.Context(), next); err != nil {
				t.Error(err)
			}
			if again := mustAcquire(t, b, next); again.Token != want {
				t.Errorf("repeated: got token %d, want %d", again.Token, want)
			}
			mustRelease(t, b, next)
		}
		refused(t, s, b, "after the last token")
	})
}

func TestCounterThatIsNoneIsAnError(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		for _, value := range []string{"9007199254740994", "9223372036854775807", "99999999999999999999", "x", "-5", "1.5", "", "1e3", "0x10", "nan", " 1"} {
			c.Set(ctx, redis.CounterKey("k"), value, time.Minute)
			refused(t, s, b, value)
		}
		c.Del(ctx, redis.CounterKey("k"))
		c.HSet(ctx, redis.CounterKey("k"), "a", "hash")
		refused(t, s, b, "a hash")
	})
}

// refused is an error that is no verdict, names the key and the server, and
// leaves nothing behind.
func refused(t *testing.T, s *redistest.Server, b *redis.Backend, why string) {
	t.Helper()
	_, err := b.Acquire(t.Context(), lease("k", time.Second))
	var e *backend.Error
	if !errors.As(err, &e) || errors.Is(err, backend.ErrHeld) || e.Op != "acquire" || e.Key != "k" || e.Node != s.Addr {
		t.Errorf("%s: got %v, want an error that names key and server", why, err)
	}
	if got := locks(t, s.Client()); len(got) != 0 {
		t.Errorf("%s: there are %q", why, got)
	}
}

func TestClockOfAClientMovesTokensByAQuarterOfMaxTTLAtMost(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, s.Client())
		const reach = backend.Token(30 * time.Second / 4 / time.Microsecond)
		now := func() backend.Token { return backend.Token(time.Now().UnixMicro()) }
		const slack = backend.Token(2 * time.Second / time.Microsecond)
		for _, tc := range []struct {
			name  string
			start time.Time
			want  backend.Token // relative to the server's clock
		}{
			{"right", time.Now(), 0},
			{"an hour ahead", time.Now().Add(time.Hour), reach},
			{"an hour behind", time.Now().Add(-time.Hour), -reach},
			{"in the year 9999", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), reach},
			{"before 1970", time.Unix(-1, 0), -reach},
			{"unset", time.Time{}, 0},
		} {
			l := lease("key of a clock "+tc.name, time.Second)
			l.Start = tc.start
			got := mustAcquire(t, b, l)
			if d := got.Token - now() - tc.want; d < -slack || d > slack {
				t.Errorf("%s: token %d is %d µs from the server's clock, want about %d", tc.name, got.Token, got.Token-now(), tc.want)
			}
		}
	})
}

// Case 46.
func TestTokensIncreaseOverExpiryStealWipeAndRestart(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		var last backend.Token
		check := func(after string, l backend.Lease) {
			t.Helper()
			if l.Token <= last {
				t.Errorf("after %s: token %d after %d", after, l.Token, last)
			}
			last = l.Token
		}
		b := newBackend(t, c)
		hold := mustAcquire(t, b, lease("k", 20*time.Millisecond))
		check("the start", hold)
		eventually(t, "the key expires", func() bool { return c.Exists(ctx, "k").Val() == 0 })
		hold = mustAcquire(t, b, lease("k", time.Second))
		check("expiry", hold)
		c.Set(ctx, "k", "thief", time.Second)
		c.Del(ctx, "k")
		hold = mustAcquire(t, b, lease("k", time.Second))
		check("a steal", hold)
		mustRelease(t, b, hold)
		c.Del(ctx, redis.CounterKey("k"))
		hold = mustAcquire(t, newBackend(t, c), lease("k", time.Second))
		check("the loss of the counter, on another client", hold)
		s.Wipe()
		hold = mustAcquire(t, b, lease("k", time.Second))
		check("a wipe", hold)
		if s.Flavour != redistest.Miniredis {
			s.Restart()
			hold = mustAcquire(t, b, lease("k", time.Second))
			check("a restart", hold)
		}
	})
}

func TestRenewAssertsTheToken(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		ahead := lease("k", 5*time.Second)
		ahead.Token = backend.Token(time.Now().Add(time.Hour).UnixMicro())
		held := mustAcquire(t, b, ahead)
		c.Del(ctx, redis.CounterKey("k")) // as eviction does
		c.PExpire(ctx, "k", time.Second)
		if err := b.Renew(ctx, held); err != nil {
			t.Fatal(err)
		}
		if left := c.PTTL(ctx, "k").Val(); left < 2*time.Second {
			t.Errorf("the term did not start anew: %v left", left)
		}
		c.PExpire(ctx, "k", 20*time.Second)
		if err := b.Renew(ctx, held); err != nil {
			t.Fatal(err)
		}
		if left := c.PTTL(ctx, "k").Val(); left < 15*time.Second {
			t.Errorf("the term was shortened: %v left", left)
		}
		mustRelease(t, b, held)
		if next := mustAcquire(t, b, lease("k", time.Second)); next.Token <= held.Token {
			t.Errorf("token %d after %d", next.Token, held.Token)
		}
	})
}

// Cases 24 and 25.
func TestRenewOfWhatIsLostIsErrLostAndNoKey(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, c)
		held := mustAcquire(t, b, lease("k", time.Second))
		c.Set(ctx, "k", held.Owner+"0", time.Second) // Case 15: an owner is not a prefix.
		if err := b.Renew(ctx, held); !errors.Is(err, backend.ErrLost) {
			t.Errorf("stolen: got %v, want ErrLost", err)
		}
		c.Del(ctx, "k")
		if err := b.Renew(ctx, held); !errors.Is(err, backend.ErrLost) {
			t.Errorf("gone: got %v, want ErrLost", err)
		}
		if got := locks(t, c); len(got) != 0 {
			t.Errorf("renewing made %q", got)
		}
	})
}

// Case 35.
func TestReleaseOfAFreeKeyIsNilUntilTheTermEnds(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, s.Client())
		held := mustAcquire(t, b, lease("k", 10*time.Second))
		mustRelease(t, b, held)
		if err := b.Release(t.Context(), held); err != nil {
			t.Errorf("repeated: got %v, want nil", err)
		}
		held.Start = held.Start.Add(-held.TTL)
		if err := b.Release(t.Context(), held); !errors.Is(err, backend.ErrLost) {
			t.Errorf("after the term: got %v, want ErrLost", err)
		}
	})
}

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

// Case 49.
func TestScriptFlushBetweenAnyTwoCalls(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b, c := newBackend(t, s.Client()), s.Client()
		flush := func() {
			if err := c.ScriptFlush(t.Context()).Err(); err != nil && err != goredis.Nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			flush()
			held := mustAcquire(t, b, lease("k", time.Second))
			flush()
			if err := b.Renew(t.Context(), held); err != nil {
				t.Error(err)
			}
			flush()
			mustRelease(t, b, held)
			if got := b.Lanes(); got != 0 {
				t.Errorf("%d lanes: a script that did not run was taken for one on its way", got)
			}
		}
	})
}
