package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/distmutex/distmutex/internal/redistest"
	goredis "github.com/redis/go-redis/v9"
)

// proxied gives a client through a proxy and one that goes straight.
func proxied(t *testing.T, f redistest.Flavour) (*redistest.Proxy, *goredis.Client, *goredis.Client) {
	s := redistest.Start(t, f, 1)[0]
	p := redistest.NewProxy(t, s.Addr)
	c := redistest.NewClient(t, p.Addr)
	set(t, c, "warm", "up")
	return p, c, s.Client()
}

func TestProxyPassesEverythingOn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		_, c, direct := proxied(t, f)
		big := string(make([]byte, 1<<20))
		set(t, c, "big", big)
		if get(t, direct, "big") != big || get(t, c, "big") != big {
			t.Error("a large value did not pass whole")
		}
	})
}

func TestProxyDelaysEachDirection(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		p, c, _ := proxied(t, f)
		for _, d := range [][2]time.Duration{{30 * time.Millisecond, 0}, {0, 30 * time.Millisecond}} {
			p.Delay(d[0], d[1])
			start := time.Now()
			set(t, c, "k", "v")
			if took := time.Since(start); took < 30*time.Millisecond {
				t.Errorf("delay %v: took only %v", d, took)
			}
		}
		p.Delay(0, 0)
	})
}

func TestProxyBlackHoleDeliversLate(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		p, c, direct := proxied(t, f)
		p.BlackHole(true)
		done := make(chan error, 1)
		go func() { done <- c.Set(t.Context(), "k", "v", 0).Err() }()
		silent(t, c) // a new connection, for the other is in use
		if got := get(t, direct, "k"); got != "" {
			t.Errorf("a request passed the black hole: %q", got)
		}
		p.BlackHole(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := get(t, direct, "k"); got != "v" {
			t.Errorf("after the black hole: got %q", got)
		}
	})
}

func TestProxyCutsAndRefuses(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		p, c, _ := proxied(t, f)
		p.Refuse(true)
		set(t, c, "k", "v") // what is open stays
		p.Cut()
		for range 2 { // the pool may find out by using the connection
			if err := c.Ping(t.Context()).Err(); err == nil {
				t.Error("the proxy was to refuse")
			}
		}
		p.Refuse(false)
		if got := get(t, c, "k"); got != "v" {
			t.Errorf("got %q", got)
		}
	})
}

func TestProxyLosesOneReply(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		p, c, direct := proxied(t, f)
		lost := p.LoseReply(2, "incr")
		for i, ok := range []bool{true, false, true} {
			if err := c.Incr(t.Context(), "n").Err(); (err == nil) != ok {
				t.Errorf("request %d: %v", i+1, err)
			}
			get(t, c, "n") // does not count
		}
		<-lost
		if got := get(t, direct, "n"); got != "3" {
			t.Errorf("the server carried out %s of 3", got)
		}
	})
}

func TestProxyKeepsOneReply(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		p, c, direct := proxied(t, f)
		kept := p.KeepReply(1, "incr")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Incr(ctx, "n").Err() }()
		<-kept
		if got := get(t, direct, "n"); got != "1" {
			t.Errorf("the server carried out %s, want 1", got)
		}
		select {
		case err := <-done:
			t.Errorf("a request whose reply was kept ended with %v", err)
		default:
		}
		set(t, c, "k", "v") // on another connection
		cancel()
		p.Cut()
		if err := <-done; err == nil {
			t.Error("a reply that was kept arrived")
		}
	})
}

func TestProxyLosesOneRequest(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		p, c, direct := proxied(t, f)
		lost := p.LoseRequest(1, "")
		if err := c.Incr(t.Context(), "n").Err(); err == nil {
			t.Error("a lost request was answered")
		}
		<-lost
		if err := c.Incr(t.Context(), "n").Err(); err != nil {
			t.Error(err)
		}
		if got := get(t, direct, "n"); got != "1" {
			t.Errorf("the server carried out %s, want 1", got)
		}
	})
}
