package network_test

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/chaos/internal/network"
	"github.com/distmutex/distmutex/internal/redistest"
)

// open puts a network before a server, and a client behind it.
func open(t *testing.T) (p *network.Proxy, counts *network.Counts, through, direct *goredis.Client) {
	s := redistest.Start(t, redistest.Flavours()[0], 1)[0]
	counts = new(network.Counts)
	p, err := network.New(s.Addr, 1, counts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, counts, redistest.NewClient(t, p.Addr), s.Client()
}

func incr(t *testing.T, c *goredis.Client) error {
	return c.Eval(t.Context(), "return redis.call('INCR', KEYS[1])", []string{"n"}).Err()
}

// eventually waits for what happens behind a client's back.
func eventually(t *testing.T, direct *goredis.Client, want string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if got = direct.Get(t.Context(), "n").Val(); got == want {
			return
		}
	}
	t.Errorf("got %q, want %q", got, want)
}

func TestEachFaultDoesWhatItSays(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*network.Conditions)
		fail bool
		want string
	}{
		"well":         {func(*network.Conditions) {}, false, "1"},
		"request lost": {func(c *network.Conditions) { c.LoseRequest = 1 }, true, ""},
		"reply lost":   {func(c *network.Conditions) { c.LoseReply = 1 }, true, "1"},
		"late":         {func(c *network.Conditions) { c.Late = 1 }, true, "1"},
		"twice":        {func(c *network.Conditions) { c.Twice = 1 }, false, "2"},
		"slow":         {func(c *network.Conditions) { c.Delay = [2]time.Duration{time.Millisecond, time.Millisecond} }, false, "1"},
		"refused":      {func(c *network.Conditions) { c.Refuse = true }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _, through, direct := open(t)
			p.Set(tc.set)
			if err := incr(t, through); (err != nil) != tc.fail {
				t.Errorf("got %v", err)
			}
			eventually(t, direct, tc.want)
		})
	}
}

func TestHeldMessagesArriveLate(t *testing.T) {
	for dir, meanwhile := range map[int]string{network.ToServer: "", network.ToClient: "1"} {
		p, _, through, direct := open(t)
		if err := through.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		p.Set(func(c *network.Conditions) { c.Hold[dir] = true })
		done := make(chan error, 1)
		go func() { done <- incr(t, through) }()
		eventually(t, direct, meanwhile)
		select {
		case err := <-done:
			t.Errorf("it did not wait: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		p.Set(func(c *network.Conditions) { c.Hold = [2]bool{} })
		if err := <-done; err != nil {
			t.Error(err)
		}
		eventually(t, direct, "1")
	}
}

func TestTrapComesAfterTheReply(t *testing.T) {
	p, _, through, _ := open(t)
	sprung := make(chan struct{})
	p.Trap(network.Reply, 2, func() { close(sprung) })
	for range 2 {
		select {
		case <-sprung:
			t.Error("too early")
		default:
		}
		if err := incr(t, through); err != nil {
			t.Fatal(err)
		}
	}
	<-sprung
}

func TestLeadGoesToAnotherServer(t *testing.T) {
	p, counts, through, direct := open(t)
	other := redistest.Start(t, redistest.Flavours()[0], 1)[0]
	if err := incr(t, through); err != nil {
		t.Fatal(err)
	}
	p.Lead(other.Addr)
	for incr(t, through) != nil { // the old connection has ended
		time.Sleep(time.Millisecond)
	}
	eventually(t, other.Client(), "1")
	eventually(t, direct, "1")
	if counts.Cut.Load() == 0 {
		t.Error("nothing was cut")
	}
}
