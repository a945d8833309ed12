package redis_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/internal/redistest"
)

var _ fencing.Source = (*redis.Tokens)(nil)

func newTokens(t testing.TB, c goredis.UniversalClient) *redis.Tokens {
	t.Helper()
	s, err := redis.NewTokens(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func draw(t testing.TB, s *redis.Tokens, key string, floor backend.Token) backend.Token {
	t.Helper()
	got, err := s.Next(t.Context(), key, floor)
	if err != nil {
		t.Fatalf("Next(%q, %d): %v", key, floor, err)
	}
	return got
}

// counterOf is the one key that Tokens keeps for a key.
func counterOf(t *testing.T, c *goredis.Client) string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys on the server: %q, %v; want one", keys, err)
	}
	return keys[0]
}

func TestTokensRiseByTheServersClock(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		tokens := newTokens(t, c)
		now, err := c.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		last := draw(t, tokens, "k", 0)
		if last < backend.Token(now.UnixMicro()) {
			t.Errorf("the first token is %d, want at least the server's clock, %d", last, now.UnixMicro())
		}
		for range 20 {
			got := draw(t, tokens, "k", last-5)
			if got <= last {
				t.Errorf("token %d after %d", got, last)
			}
			last = got
		}
		life, err := c.PTTL(t.Context(), counterOf(t, c)).Result()
		if err != nil || life > 24*time.Hour || life < 23*time.Hour {
			t.Errorf("the counter lives for %v, %v; want a day", life, err)
		}
		if err := c.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if got := draw(t, tokens, "k", 0); got <= last {
			t.Errorf("token %d after the counter was lost, want more than %d", got, last)
		}
	})
}

// What floors have pushed ahead of the clock must not be forgotten before the
// clock is there.
func TestTokensBeyondTheClockAreExactAndKept(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		tokens := newTokens(t, c)
		year := 365 * 24 * time.Hour
		ahead := backend.Token(time.Now().Add(year).UnixMicro())
		for i, floor := range []backend.Token{ahead, 0, ahead, ahead + 3, 0} {
			want := ahead + []backend.Token{0, 1, 2, 3, 4}[i]
			if got := draw(t, tokens, "k", floor); got != want {
				t.Errorf("Next(%d) = %d, want %d", floor, got, want)
			}
		}
		counter := counterOf(t, c)
		life, err := c.PTTL(t.Context(), counter).Result()
		if err != nil || life < year || life > year+25*time.Hour {
			t.Errorf("the counter lives for %v, %v; want a year and a day", life, err)
		}
		for want := backend.MaxToken - 2; want <= backend.MaxToken; want++ {
			if got := draw(t, tokens, "k", backend.MaxToken-2); got != want {
				t.Errorf("near the end: %d, want %d", got, want)
			}
		}
		if got, err := tokens.Next(t.Context(), "k", 0); err == nil {
			t.Errorf("after the last token: %d, want an error", got)
		}
		for _, junk := range []string{"", "x", "-1", "1e3", "9007199254740993"} {
			if err := c.Set(t.Context(), counter, junk, 0).Err(); err != nil {
				t.Fatal(err)
			}
			if got, err := tokens.Next(t.Context(), "k", 0); err == nil {
				t.Errorf("with a counter of %q: %d, want an error", junk, got)
			}
		}
	})
}

func TestTokensOfManyProcessesAreUnique(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		unique(t, func() goredis.UniversalClient { return worst(t, s.Addr) })
	})
}

// unique has four processes draw for one key.
func unique(t *testing.T, client func() goredis.UniversalClient) {
	var mu sync.Mutex
	seen := make(map[backend.Token]bool)
	var wg sync.WaitGroup
	for range 4 {
		tokens := newTokens(t, client())
		wg.Go(func() {
			var last backend.Token
			for range 50 {
				got, err := tokens.Next(t.Context(), "k", 0)
				mu.Lock()
				if err != nil || got <= last || seen[got] {
					t.Errorf("token %d, %v after %d; drawn before: %v", got, err, last, seen[got])
				}
				last, seen[got] = got, true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// scriptless is a client that may not send scripts.
func scriptless(t *testing.T, s *redistest.Server, edits ...func(*goredis.Options)) *goredis.Client {
	t.Helper()
	rights := []any{"ACL", "SETUSER", "plain", "on", ">secret", "~*", "+@all", "-@scripting"}
	if err := s.Client().Do(t.Context(), rights...).Err(); err != nil {
		t.Fatal(err)
	}
	return worst(t, s.Addr, append(edits, func(o *goredis.Options) { o.Username, o.Password = "plain", "secret" })...)
}

func TestTokensWithoutScripts(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsReal(t, f)
		s := redistest.Start(t, f, 1)[0]
		with, without := newTokens(t, s.Client()), newTokens(t, scriptless(t, s))
		var last backend.Token
		for range 5 {
			for _, tokens := range []*redis.Tokens{with, without} {
				got := draw(t, tokens, "k", 0)
				if got <= last {
					t.Errorf("token %d after %d", got, last)
				}
				last = got
			}
		}
		if now := backend.Token(time.Now().UnixMicro()); last < now-1e7 {
			t.Errorf("token %d is far from the clock, %d", last, now)
		}
		year := 365 * 24 * time.Hour
		ahead := backend.Token(time.Now().Add(year).UnixMicro())
		for _, want := range []backend.Token{ahead, ahead + 1, ahead + 2} {
			if got := draw(t, without, "k", ahead); got != want {
				t.Errorf("token %d, want %d", got, want)
			}
		}
		c := s.Client()
		counter := counterOf(t, c)
		if life, err := c.PTTL(t.Context(), counter).Result(); err != nil || life < year || life > year+25*time.Hour {
			t.Errorf("the counter lives for %v, %v; want a year and a day", life, err)
		}
		draw(t, without, "k", backend.MaxToken)
		if got, err := without.Next(t.Context(), "k", 0); err == nil {
			t.Errorf("after the last token: %d, want an error", got)
		}
		if err := c.Set(t.Context(), counter, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := without.Next(t.Context(), "k", 0); err == nil {
			t.Errorf("with a counter that is none: %d, want an error", got)
		}
	})
}

func TestTokensWithoutScriptsAreUnique(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsReal(t, f)
		s := redistest.Start(t, f, 1)[0]
		unique(t, func() goredis.UniversalClient { return scriptless(t, s) })
	})
}

// A client that sends a draw again leaves a gap.
func TestTokensOverALinkThatLosesReplies(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s.Addr)
		tokens := newTokens(t, worst(t, p.Addr))
		ahead := backend.Token(time.Now().Add(time.Hour).UnixMicro())
		if got := draw(t, tokens, "k", ahead); got != ahead {
			t.Fatalf("token %d, want %d", got, ahead)
		}
		lost := p.LoseReply(1, "evalsha")
		if got := draw(t, tokens, "k", 0); got != ahead+2 {
			t.Errorf("token %d of a draw that was sent twice, want %d", got, ahead+2)
		}
		<-lost
	})
}

func TestTokensRefuseBadInput(t *testing.T) {
	var invalid *backend.InvalidError
	for _, c := range []goredis.UniversalClient{nil, (*goredis.Client)(nil)} {
		if _, err := redis.NewTokens(c); !errors.As(err, &invalid) || invalid.Field != "client" {
			t.Errorf("NewTokens of a nil client: %v, want an InvalidError", err)
		}
	}
	tokens := newTokens(t, redistest.NewClient(t, "127.0.0.1:1")) // nothing is sent
	for _, c := range []struct {
		key, field string
		floor      backend.Token
	}{{"", "Key", 0}, {"a\x00", "Key", 0}, {strings.Repeat("k", backend.MaxKey+1), "Key", 0}, {"k", "floor", -1}, {"k", "floor", backend.MaxToken + 1}} {
		if _, err := tokens.Next(t.Context(), c.key, c.floor); !errors.As(err, &invalid) || invalid.Field != c.field {
			t.Errorf("Next(%.5q, %d): %v, want an InvalidError of %s", c.key, c.floor, err, c.field)
		}
	}
}

func TestTokensErrorsNameKeyAndServer(t *testing.T) {
	tokens := newTokens(t, redistest.NewClient(t, "127.0.0.1:1"))
	_, err := tokens.Next(t.Context(), "k", 0)
	var e *backend.Error
	if !errors.As(err, &e) || e.Key != "k" || e.Node != "127.0.0.1:1" {
		t.Errorf("Next without a server: %v, want a backend.Error with the key and the server", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tokens.Next(ctx, "k", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Next with a dead context: %v, want context.Canceled", err)
	}
}

// The locks of one server, with tokens from another.
func TestConformanceFencedByAnotherServer(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		t.Parallel()
		servers := redistest.Start(t, f, 2)
		fence := fencing.Middleware(newTokens(t, servers[1].Client()))
		open := func(t testing.TB) backend.Backend {
			return fence(over(t, goredis.NewClient(&goredis.Options{Addr: servers[0].Addr})))
		}
		conformance.Run(t, exempt(conformance.Harness{
			New:  open,
			Peer: func(t testing.TB, _ backend.Backend) backend.Backend { return open(t) },
		}, f))
	})
}
