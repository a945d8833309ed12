package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// bounded is how long a call may go on after its context ended. It is generous,
// since the machine may be busy; a client's own time-out is far longer.
const bounded = 2 * time.Second

func verbs(b *redis.Backend, l backend.Lease) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error { _, err := b.Acquire(ctx, l); return err },
		"renew":   func(ctx context.Context) error { return b.Renew(ctx, l) },
		"release": func(ctx context.Context) error { return b.Release(ctx, l) },
		"wait":    func(ctx context.Context) error { _, err := b.Wait(ctx, l); return err },
	}
}

// Case 45, with the client's defaults.
func TestEndOfContextEndsACallToASilentServer(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, worst(t, s.Addr))
		warm(t, b)
		s.Freeze()
		defer s.Thaw()
		for _, kind := range []string{"cancel", "deadline"} {
			for op, call := range verbs(b, lease("k", 10*time.Second)) {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				want := context.DeadlineExceeded
				if kind == "cancel" {
					ctx, cancel = context.WithCancel(t.Context())
					want = context.Canceled
					time.AfterFunc(100*time.Millisecond, cancel)
				}
				began := time.Now()
				err := call(ctx)
				took := time.Since(began)
				cancel()
				var e *backend.Error
				if !errors.As(err, &e) || e.Op != op || e.Key != "k" || e.Node != s.Addr || !errors.Is(err, want) {
					t.Errorf("%s: got %v, want one that wraps %v", op, err, want)
				}
				if took > bounded {
					t.Errorf("%s went on for %v", op, took)
				}
			}
		}
	})
}

func TestContextThatHasEndedSendsNothingButAReleaseIsCarriedOut(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, c)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		l := lease("k", 10*time.Second)
		for op, call := range verbs(b, l) {
			if err := call(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v, want context.Canceled", op, err)
			}
		}
		if got := locks(t, c); len(got) != 0 {
			t.Errorf("there are %q", got)
		}
		held := mustAcquire(t, b, lease("k", 20*time.Second))
		_ = b.Release(ended, held) // Case 32.
		eventually(t, "the key is released", func() bool { return len(locks(t, c)) == 0 })
	})
}

// Cases 2 and 45: after the server is back, nothing is left of what was
// cancelled, long before its term ends.
func TestCancelledAcquireLeavesNothing(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, worst(t, s.Addr))
		warm(t, b)
		s.Freeze()
		l := lease("k", 30*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := b.Acquire(ctx, l); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquire: got %v", err)
		}
		if err := b.Release(ctx, l); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("release: got %v", err)
		}
		s.Thaw()
		eventually(t, "the lane ends", func() bool { return b.Lanes() == 0 })
		if got := locks(t, c); len(got) != 0 {
			t.Errorf("there are %q", got)
		}
	})
}

// T8: a frozen server gets an acquire on one connection and its release on
// another, and carries them out in any order when it thaws.
func TestReleaseIsNotOvertakenByItsAcquire(t *testing.T) {
	clients := map[string]func(*goredis.Options){
		"patient": func(*goredis.Options) {},
		// Gives up on a connection, and with it on the order of requests.
		"hasty": func(o *goredis.Options) { o.ReadTimeout, o.MaxRetries = 5*time.Millisecond, 2 },
	}
	for name, edit := range clients {
		t.Run(name, func(t *testing.T) {
			real(t, func(t *testing.T, s *redistest.Server) {
				c := s.Client()
				b := newBackend(t, worst(t, s.Addr, edit))
				for range 30 {
					overtake(t, s, b)
				}
				// What the server read last may be carried out last: let it come.
				for range 20 {
					if got := locks(t, c); len(got) != 0 {
						t.Fatalf("a released owner acquired %q", got)
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		})
	}
}

func overtake(t *testing.T, s *redistest.Server, b *redis.Backend) {
	t.Helper()
	warm(t, b)
	s.Freeze()
	l := lease("k", 30*time.Second)
	for _, verb := range []string{"acquire", "release"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_ = verbs(b, l)[verb](ctx) // the server says nothing
		cancel()
	}
	s.Thaw()
	eventually(t, "the lane ends", func() bool { return b.Lanes() == 0 || b.Release(t.Context(), l) == nil })
}

// T8 and F15 for certain: the network holds the acquire back, and its release
// travels on another connection.
func TestDelayedAcquireIsUndoneByItsRelease(t *testing.T) {
	clients := map[string]func(*goredis.Options){
		"patient": func(o *goredis.Options) { o.MaxRetries = -1 },                                     // the release waits for the answer
		"hasty":   func(o *goredis.Options) { o.MaxRetries, o.ReadTimeout = -1, 30*time.Millisecond }, // it overtakes, and leaves a tombstone
	}
	for name, edit := range clients {
		t.Run(name, func(t *testing.T) {
			behindProxy(t, func(t *testing.T, _ *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
				b := newBackend(t, worst(t, p.Addr, edit))
				warm(t, b)
				p.Delay(500*time.Millisecond, 0)
				l := lease("k", 30*time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if _, err := b.Acquire(ctx, l); err == nil {
					t.Fatal("the acquire was not delayed")
				}
				p.Delay(0, 0)
				eventually(t, "the release is carried out", func() bool { return b.Release(t.Context(), l) == nil })
				time.Sleep(600 * time.Millisecond) // the acquire has arrived
				if got := locks(t, direct); len(got) != 0 {
					t.Errorf("a released owner acquired %q", got)
				}
			})
		})
	}
}

func TestCloseWaitsForWhatIsOnItsWay(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		b, err := redis.New(worst(t, s.Addr), nil)
		if err != nil {
			t.Fatal(err)
		}
		warm(t, b)
		s.Freeze()
		l := lease("k", 30*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, _ = b.Acquire(ctx, l)
		_ = b.Release(ctx, l)
		thaw := time.AfterFunc(100*time.Millisecond, s.Thaw)
		defer thaw.Stop()
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if got := locks(t, s.Client()); len(got) != 0 {
			t.Errorf("Close did not wait for the release: there are %q", got)
		}
		for op, call := range verbs(b, l) {
			if err := call(t.Context()); !errors.Is(err, goredis.ErrClosed) {
				t.Errorf("%s after Close: got %v, want goredis.ErrClosed", op, err)
			}
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("second close: %v", err)
		}
	})
}

func TestCloseIsBounded(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		b, err := redis.New(worst(t, s.Addr), nil)
		if err != nil {
			t.Fatal(err)
		}
		warm(t, b)
		s.Freeze()
		defer s.Thaw()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, _ = b.Acquire(ctx, lease("k", time.Second))
		if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
	})
}
