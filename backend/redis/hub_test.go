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

	"github.com/distmutex/distmutex/internal/redistest"
)

// Case 43.
func TestCloseEndsWaits(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := unordered(t, c)
		c.Set(t.Context(), "k", "another", 0)
		done := make(chan error, 1)
		go func() {
			var err error
			for err == nil { // a poll is a hint, too
				_, err = b.Wait(t.Context(), lease("k", 10*time.Second))
			}
			done <- err
		}()
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
		b := unordered(t, c)
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
		holder, c := unordered(t, s.Client()), s.Client()
		b := unordered(t, worst(t, s.Addr))
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
		b := unordered(t, worst(t, p.Addr, func(o *goredis.Options) { o.MaxRetries = -1 }))
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
		b := unordered(t, c)
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
