package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/internal/redistest"
)

// Cases 1, 22 and 35: every request of a verb in turn is carried out and its
// reply lost, or lost itself. Whether the client asks again by itself or the
// caller does, the outcome is one acquire, one renewal and one release.
func TestPlainSurvivesEveryLostReplyAndRequest(t *testing.T) {
	clients := map[string]func(*testing.T, string) *goredis.Client{
		"client asks again": func(t *testing.T, addr string) *goredis.Client { return worst(t, addr) },
		"caller asks again": func(t *testing.T, addr string) *goredis.Client { return redistest.NewClient(t, addr) },
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, s *redistest.Server, edit func(*goredis.Client) *goredis.Client) {
				direct, p := s.Client(), redistest.NewProxy(t, s.Addr)
				b := newPlain(t, edit(client(t, p.Addr)))
				for nth := 1; nth <= 4; nth++ {
					loseEach(t, b, direct, func() { p.LoseReply(nth, "") })
					loseEach(t, b, direct, func() { p.LoseRequest(nth, "") })
				}
			})
		})
	}
}

// loseEach goes through the verbs with a fault in each.
func loseEach(t *testing.T, b backend.Backend, direct *goredis.Client, arm func()) {
	t.Helper()
	ctx := t.Context()
	again := func(op string, f func() error) error {
		t.Helper()
		arm()
		err := f()
		for n := 0; err != nil && !errors.Is(err, backend.ErrHeld) && !errors.Is(err, backend.ErrLost); n++ {
			if n > 5 {
				t.Fatalf("%s: %v", op, err)
			}
			err = f()
		}
		return err
	}
	want := lease("k", 20*time.Second)
	acquire := func() error { _, err := b.Acquire(ctx, want); return err }
	if err := again("acquire", acquire); err != nil {
		t.Errorf("acquire: %v", err)
	}
	direct.PExpire(ctx, "k", 5*time.Second)
	if err := again("renew", func() error { return b.Renew(ctx, want) }); err != nil {
		t.Errorf("renew: %v", err)
	}
	if left := direct.PTTL(ctx, "k").Val(); direct.Get(ctx, "k").Val() != want.Owner || left < 10*time.Second {
		t.Errorf("after the renewal the key is not the owner's for 20s but for %v", left)
	}
	told := want
	told.Token = 1 // as from fencing.Middleware: a loss would be reported
	if err := again("release", func() error { return b.Release(ctx, told) }); err != nil {
		t.Errorf("release: %v", err)
	}
	if got := direct.Keys(ctx, "*").Val(); len(got) != 0 {
		t.Errorf("there are %q", got)
	}
	// Case 33: what comes late leaves the next hold alone.
	direct.Set(ctx, "k", "another", 20*time.Second)
	if err := again("release", func() error { return b.Release(ctx, told) }); !errors.Is(err, backend.ErrLost) {
		t.Errorf("late release: got %v, want ErrLost", err)
	}
	if err := again("renew", func() error { return b.Renew(ctx, want) }); !errors.Is(err, backend.ErrLost) {
		t.Errorf("late renewal: got %v, want ErrLost", err)
	}
	want = lease("k", 20*time.Second)
	if err := again("acquire", acquire); !errors.Is(err, backend.ErrHeld) {
		t.Errorf("acquire of another's: got %v, want ErrHeld", err)
	}
	if direct.Get(ctx, "k").Val() != "another" {
		t.Error("another's hold was touched")
	}
	direct.Del(ctx, "k")
}

// meddling calls a function after each GET in a transaction has been answered.
type meddling struct {
	lacking
	meddle func()
}

func (h *meddling) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "get" && h.meddle != nil {
			h.meddle()
		}
		return err
	}
}

// Between the look at the key and the command, anything may happen to it.
func TestPlainActsOnNothingButWhatItLookedAt(t *testing.T) {
	behindProxy(t, func(t *testing.T, s *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
		ctx := context.Background()
		steal := func() { direct.Set(ctx, "k", "another", 20*time.Second) }
		for name, tc := range map[string]struct {
			meddle  func()
			lost    bool // a definite answer; else the outcome is unknown
			another bool // holds the key in the end
		}{
			"stolen":               {steal, true, true},
			"deleted":              {func() { direct.Del(ctx, "k") }, true, false},
			"deleted and stolen":   {func() { direct.Del(ctx, "k"); steal() }, true, true},
			"ended":                {func() { direct.PExpire(ctx, "k", time.Millisecond); time.Sleep(5 * time.Millisecond) }, true, false},
			"cut off and stolen":   {func() { steal(); p.Cut() }, false, true},
			"touched all the time": {func() { direct.PExpire(ctx, "k", 20*time.Second) }, false, false},
		} {
			for _, op := range []string{"renew", "release"} {
				c := worst(t, p.Addr)
				hook := new(meddling)
				c.AddHook(hook)
				b := newPlain(t, c)
				held := mustAcquirePlainly(t, b, lease("k", 10*time.Second))
				hook.meddle = tc.meddle
				var err error
				if op == "renew" {
					err = b.Renew(ctx, held)
				} else {
					held.Token, held.Start = 1, held.Start.Add(-held.TTL) // a loss is reported
					err = b.Release(ctx, held)
				}
				if err == nil || errors.Is(err, backend.ErrLost) != tc.lost {
					t.Errorf("%s, %s: got %v; want ErrLost: %v", name, op, err, tc.lost)
				}
				if got := direct.Get(ctx, "k").Val(); (got == "another") != tc.another {
					t.Errorf("%s, %s: another's hold was touched, or made: %v", name, op, got == "another")
				}
				direct.Del(ctx, "k")
			}
		}
	})
}

// Cases 2, 32 and 45, and T8 in one process: a server that says nothing ends no
// call late, and carries out in order what it was asked.
func TestPlainCallsEndWithTheirContextsAndStayInOrder(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		for _, client := range []*goredis.Client{worst(t, s.Addr), old(worst(t, s.Addr))} {
			b := newPlain(t, client)
			mustRelease(t, b, mustAcquirePlainly(t, b, lease("warm", time.Second)))
			s.Freeze()
			l := lease("k", 30*time.Second)
			for _, op := range []string{"acquire", "renew", "wait", "release"} {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				began := time.Now()
				if err := verbs(b, l)[op](ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > bounded {
					t.Errorf("%s: got %v after %v, want the end of its context", op, err, time.Since(began))
				}
				cancel()
			}
			s.Thaw()
			eventually(t, "the lane ends", func() bool { return b.Lanes() == 0 })
			if got := c.Keys(t.Context(), "*").Val(); len(got) != 0 {
				t.Errorf("there are %q", got)
			}
		}
	})
}
