package redis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

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
