package redis_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// waiting runs Wait beside the test and says when it returned.
func waiting(t *testing.T, b *redis.Backend, ctx context.Context, key string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		got, err := b.Wait(ctx, lease(key, 10*time.Second))
		if got.TTL != 0 || got.Owner != "" {
			err = errors.Join(err, errors.New("a hint that looks like a grant"))
		}
		done <- err
	}()
	return done
}

// hint waits for the end of a Wait, for less than its polls would take.
func hint(t *testing.T, why string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", why, err)
		}
	case <-time.After(900 * time.Millisecond): // the earliest poll is at 1 s
		t.Errorf("%s: not woken", why)
		<-done
	}
}

func TestWaitForAFreeKeyReturnsAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, s.Client())
		hint(t, "free", waiting(t, b, t.Context(), "k"))
	})
}

// The key never expires and its waiters do not poll so early: what wakes them
// is the release alone.
func TestReleaseWakesWaitersOfOtherClients(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		holder, b := newBackend(t, s.Client()), newBackend(t, worst(t, s.Addr))
		for _, key := range []string{"k", "{k}", "k{x}"} {
			held := mustAcquire(t, holder, lease(key, 20*time.Second))
			var all []<-chan error
			for range 5 {
				all = append(all, waiting(t, b, t.Context(), key))
			}
			eventually(t, "the subscription is confirmed", func() bool { return b.Listening(key) })
			time.Sleep(20 * time.Millisecond) // until they sleep; if not, the look at the key finds it free
			mustRelease(t, holder, held)
			for _, done := range all {
				hint(t, key, done)
			}
		}
	})
}

// The first waiter's subscription races with the release: none may be missed.
func TestReleaseBesideTheSubscriptionIsNotMissed(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		holder, b := newBackend(t, s.Client()), newBackend(t, s.Client())
		for i := range 50 {
			key := fmt.Sprint("k", i)
			held := mustAcquire(t, holder, lease(key, 20*time.Second))
			done := waiting(t, b, t.Context(), key)
			time.Sleep(time.Duration(i) * 50 * time.Microsecond)
			mustRelease(t, holder, held)
			hint(t, key, done)
		}
	})
}

// Case 41: nobody is told of an expiry, nor of a plain client's DEL.
func TestWaitEndsWithTheHoldersTerm(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, c)
		c.SetNX(t.Context(), "k", "plain", 300*time.Millisecond)
		hint(t, "expiry", waiting(t, b, t.Context(), "k"))
		eventually(t, "the key has gone", func() bool { return c.Exists(t.Context(), "k").Val() == 0 })
	})
}

func TestWaitPollsWhereNobodyWakesIt(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, c)
		c.Set(t.Context(), "k", "no expiry", 0)
		done := waiting(t, b, t.Context(), "k")
		eventually(t, "the subscription is confirmed", func() bool { return b.Listening("k") })
		c.Del(t.Context(), "k") // wakes nobody
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Error("Wait has no bound")
		}
	})
}

// Case 43.
func TestCloseEndsWaits(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, c)
		c.Set(t.Context(), "k", "another", 0)
		done := waiting(t, b, t.Context(), "k")
		eventually(t, "the subscription is confirmed", func() bool { return b.Listening("k") })
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, goredis.ErrClosed) {
			t.Errorf("got %v, want goredis.ErrClosed", err)
		}
		eventually(t, "the subscription ends", func() bool { return subscribers(t, c) == 0 })
	})
}

// One connection serves all keys and all waiters, and none has a goroutine.
func TestThousandWaitersShareOneConnection(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, c)
		const keys, each = 100, 10
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range keys * each {
			key := fmt.Sprint("k", i%keys)
			if i < keys {
				c.Set(ctx, key, "another", 0)
			}
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := b.Wait(ctx, lease(key, time.Second)); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		eventually(t, "all keys are subscribed to", func() bool {
			for i := range keys {
				if !b.Listening(fmt.Sprint("k", i)) {
					return false
				}
			}
			return true
		})
		if n := subscribers(t, c); n != 1 {
			t.Errorf("%d connections listen, want 1", n)
		}
		// Those of go-redis's own connections and of calls under way come and go.
		eventually(t, "there are few goroutines beside the waiters", func() bool {
			return runtime.NumGoroutine() < keys*each+400
		})
		cancel()
		wg.Wait()
	})
}

// subscribers counts the connections that listen to anything.
func subscribers(t *testing.T, c *goredis.Client) (n int) {
	t.Helper()
	list, err := c.ClientList(context.Background()).Result()
	if err != nil {
		return 0 // miniredis has no list
	}
	for line := range strings.Lines(list) {
		if strings.Contains(line, " sub=") && !strings.Contains(line, " sub=0 ") {
			n++
		}
	}
	return n
}

// Law 13: without any message, waiting goes on by polls, and sooner.
func TestBrokenSubscriptionIsMadeAgain(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		holder, c := newBackend(t, s.Client()), s.Client()
		b := newBackend(t, worst(t, s.Addr))
		for round := range 3 {
			held := mustAcquire(t, holder, lease("k", 20*time.Second))
			done := waiting(t, b, t.Context(), "k")
			eventually(t, "the subscription is confirmed", func() bool { return b.Listening("k") })
			c.ClientKillByFilter(t.Context(), "type", "pubsub")
			// The confirmation on the new connection wakes whoever may have missed
			// a release meanwhile.
			hint(t, fmt.Sprint("reconnect ", round), done)
			done = waiting(t, b, t.Context(), "k")
			eventually(t, "the subscription is confirmed again", func() bool { return b.Listening("k") })
			time.Sleep(20 * time.Millisecond)
			mustRelease(t, holder, held)
			hint(t, "release", done)
		}
		s.Restart()
		held := mustAcquire(t, holder, lease("k", 20*time.Second))
		eventually(t, "it is woken after a restart", func() bool {
			done := waiting(t, b, t.Context(), "k")
			return <-done == nil && b.Listening("k")
		})
		mustRelease(t, holder, held)
	})
}

// A connection that says nothing, not even that it is dead, is replaced.
func TestSilentSubscriptionIsReplaced(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s.Addr)
		c := s.Client()
		b := newBackend(t, worst(t, p.Addr, func(o *goredis.Options) { o.MaxRetries = -1 }))
		b.SetBeat(100 * time.Millisecond)
		c.Set(t.Context(), "k", "another", 0)
		wait := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, _ = b.Wait(ctx, lease("k", time.Second))
		}
		eventually(t, "the subscription is confirmed", func() bool { wait(); return b.Listening("k") })
		before := listener(t, c)
		p.BlackHole(true)
		eventually(t, "the silence is noticed", func() bool { wait(); return !b.Listening("k") })
		p.BlackHole(false)
		eventually(t, "another connection listens", func() bool {
			wait()
			return b.Listening("k") && listener(t, c) != before
		})
	})
}

// listener is the id of a connection that listens.
func listener(t *testing.T, c *goredis.Client) string {
	t.Helper()
	list, err := c.ClientList(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(list) {
		if strings.Contains(line, " sub=") && !strings.Contains(line, " sub=0 ") {
			return strings.Fields(line)[0]
		}
	}
	return ""
}

// Nobody waits: no connection, no goroutine.
func TestSubscriptionEndsWhenNobodyWaits(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, c)
		b.SetBeat(300 * time.Millisecond)
		c.Set(t.Context(), "k", "another", 200*time.Millisecond)
		if err := <-waiting(t, b, t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if subscribers(t, c) != 1 {
			t.Error("nobody listens, so the next Wait has to subscribe again")
		}
		eventually(t, "the subscription ends", func() bool { return subscribers(t, c) == 0 })
		c.Set(t.Context(), "k", "another", 0)
		done := waiting(t, b, t.Context(), "k")
		eventually(t, "it is made again", func() bool { return b.Listening("k") })
		<-done
	})
}

// A waiter that gives up owes a release, which undoes nothing and is nil.
func TestReleaseAfterWaitIsNil(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, s.Client())
		held := mustAcquire(t, b, lease("k", 10*time.Second))
		want := lease("k", 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := b.Wait(ctx, want); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait: %v", err)
		}
		mustRelease(t, b, want)
		if err := b.Renew(t.Context(), held); err != nil {
			t.Errorf("the holder lost its lease: %v", err)
		}
		if _, err := b.Acquire(t.Context(), want); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("a released owner acquires: %v", err)
		}
	})
}
