package redis_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

var (
	bubbles     = flag.Int("bubbles", 2, "how many storms TestStormInABubble makes")
	firstBubble = flag.Uint64("bubble", 1, "the seed of the first")
)

// TestStormOverTheLine in time that costs nothing: a simulated server, whose
// clock is wrong within the drift, networks of which each piece of a stream is
// late by itself, and everything else as it is. A seed makes the same faults;
// which goroutine is first is for the scheduler to say.
func TestStormInABubble(t *testing.T) {
	t.Parallel()
	for i := range *bubbles {
		seed := *firstBubble + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newBubble(t, seed).storm(t) })
		})
	}
}

// bubble is a server and the networks of those who use it.
type bubble struct {
	dice   *rand.Rand
	server *miniredis.Miniredis
	began  time.Time
	ahead  time.Duration // the server's clock, at first
	rate   float64       // of it

	mu   sync.Mutex
	down bool
}

func newBubble(t *testing.T, seed uint64) *bubble {
	dice := rand.New(rand.NewPCG(seed, 0))
	b := &bubble{
		dice: dice, server: miniredis.NewMiniRedis(), began: time.Now(),
		ahead: time.Duration(dice.Int64N(int64(2*time.Hour))) - time.Hour,
		rate:  1 + 0.009*(2*dice.Float64()-1),
	}
	t.Cleanup(func() {
		b.server.Close()
		time.Sleep(time.Minute) // for what is on its way
	})
	return b
}

// clock is the server's.
func (b *bubble) clock() time.Time {
	since := time.Since(b.began)
	return b.began.Add(b.ahead + time.Duration(float64(since)*b.rate))
}

// dial is a way to the server that nothing befalls.
func (b *bubble) dial() (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, syscall.ECONNREFUSED
	}
	fresh := b.server.Server() == nil
	c, err := b.server.Dial()
	if err == nil && fresh {
		b.server.Server().SetPreHook(redistest.Aging(b.server, b.clock))
	}
	return c, err
}

// storm lets fifteen clients in three processes contend while all kinds of things
// befall them, and then in peace.
func (b *bubble) storm(t *testing.T) {
	const lasts, calm = 30 * time.Second, 12 * time.Second
	st := storm{patience: 6 * time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), lasts+calm)
	defer cancel()
	trouble, over := context.WithTimeout(ctx, lasts)
	defer over()
	var all sync.WaitGroup
	crashes := rand.New(rand.NewPCG(b.dice.Uint64(), 1))
	all.Go(func() { b.crash(trouble, crashes) })
	for range 3 {
		n := &network{bubble: b, dice: rand.New(rand.NewPCG(b.dice.Uint64(), 2))}
		backend := newBackend(t, n.client(t))
		weather := rand.New(rand.NewPCG(b.dice.Uint64(), 3))
		all.Go(func() { n.trouble(trouble, weather) })
		for range 5 {
			all.Go(func() { st.play(ctx, backend) })
		}
	}
	all.Wait()
	st.judge(t)
	b.leftNothing(t)
	st.wentOn(t, b.began.Add(lasts+calm/3), ctx)
}

// leftNothing looks for what should have gone with those who waited.
func (b *bubble) leftNothing(t *testing.T) {
	time.Sleep(time.Second) // the last one's term may have to end
	c := worst(t, "127.0.0.1:6379", func(o *goredis.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) { return b.dial() }
	})
	for _, key := range []string{"k", redis.LineKey("k")} {
		if n, err := c.Exists(t.Context(), key).Result(); n != 0 || err != nil {
			t.Errorf("%q is there after all have gone (error %v)", key, err)
		}
	}
}

// wentOn checks that with the faults over one hold followed the other, though some
// are not released.
func (st *storm) wentOn(t *testing.T, last time.Time, ctx context.Context) {
	end, _ := ctx.Deadline()
	st.holds = append(st.holds, stormHold{told: end})
	for _, h := range st.holds {
		if h.told.Before(last) {
			continue
		}
		if gap := h.told.Sub(last); gap > 3*time.Second {
			t.Errorf("nobody got the lock for %v after the faults were over", gap)
		}
		last = h.told
	}
}

// crash stops the server now and then. It has its data when it comes back.
func (b *bubble) crash(ctx context.Context, dice *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(dice.Int64N(int64(10*time.Second))))
		b.stop()
		pause(ctx, time.Duration(dice.Int64N(int64(time.Second))))
		b.start()
	}
}

func (b *bubble) stop() {
	b.mu.Lock()
	b.down = true
	b.mu.Unlock()
	b.server.Close()
}

func (b *bubble) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = false
}
