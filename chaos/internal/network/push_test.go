package network_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/chaos/internal/network"
)

func TestEachPushFaultDoesWhatItSays(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*network.Conditions)
		want []string // besides the last, which meets no fault
	}{
		"well":  {func(*network.Conditions) {}, []string{"a", "b"}},
		"lost":  {func(c *network.Conditions) { c.LosePush = 1 }, nil},
		"late":  {func(c *network.Conditions) { c.LatePush = 1 }, []string{"a", "b"}},
		"twice": {func(c *network.Conditions) { c.TwicePush = 1 }, []string{"a", "a", "b", "b"}},
	} {
		for _, version := range []int{2, 3} {
			t.Run(name+string(rune('0'+version)), func(t *testing.T) {
				t.Parallel()
				p, counts, _, direct := open(t)
				heard := listen(t, p, version)
				p.Set(tc.set)
				for _, text := range []string{"a", "b"} {
					say(t, direct, text)
				}
				for name != "well" && counts.LostPushes.Load()+counts.LatePushes.Load()+counts.TwicePushes.Load() < 2 {
					time.Sleep(time.Millisecond) // they have not reached the network
				}
				p.Set(func(c *network.Conditions) { *c = network.Conditions{} })
				say(t, direct, "last")
				var got []string
				for deadline := time.After(10 * time.Second); len(got) <= len(tc.want); {
					select {
					case text := <-heard:
						got = append(got, text)
					case <-deadline:
						t.Fatalf("got %q", got)
					}
				}
				slices.Sort(got)
				if want := append(tc.want, "last"); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

func TestTrapAtAPush(t *testing.T) {
	p, _, _, direct := open(t)
	heard := listen(t, p, 3)
	sprung := make(chan struct{})
	p.Trap(network.Push, 2, func() { close(sprung) })
	say(t, direct, "a")
	<-heard
	select {
	case <-sprung:
		t.Error("too early")
	default:
	}
	say(t, direct, "b")
	<-sprung
}

// listen subscribes to a channel through a network.
func listen(t *testing.T, p *network.Proxy, version int) <-chan string {
	c := goredis.NewClient(&goredis.Options{Addr: p.Addr, Protocol: version})
	t.Cleanup(func() { c.Close() })
	ps := c.Subscribe(t.Context(), "channel")
	t.Cleanup(func() { ps.Close() })
	if _, err := ps.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 10)
	go func() {
		for {
			m, err := ps.ReceiveMessage(context.Background())
			if err != nil {
				return // closed
			}
			heard <- m.Payload
		}
	}()
	return heard
}

func say(t *testing.T, c *goredis.Client, text string) {
	if n, err := c.Publish(t.Context(), "channel", text).Result(); n != 1 || err != nil {
		t.Fatalf("%d heard %q: %v", n, text, err)
	}
}

// What a server may answer passes as it is, of either version of the protocol.
func TestRepliesPassUnchanged(t *testing.T) {
	for _, version := range []int{2, 3} {
		_, _, _, direct := open(t)
		p, err := network.New(direct.Options().Addr, 1, new(network.Counts))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		through := goredis.NewClient(&goredis.Options{Addr: p.Addr, Protocol: version})
		t.Cleanup(func() { through.Close() })
		plain := goredis.NewClient(&goredis.Options{Addr: direct.Options().Addr, Protocol: version})
		t.Cleanup(func() { plain.Close() })
		for _, args := range [][]any{
			{"command", "docs", "get"}, {"config", "get", "*max*"}, {"get", "none"}, {"lrange", "none", 0, -1}, {"nonsense"},
			{"eval", "return {1, {'a', false, {}}, redis.status_reply('fine')}", 0}, {"lolwut"}, {"incrbyfloat", "f", "0"},
			{"eval", "redis.setresp(3) return {double=1.5}", 0}, {"zrange", "none", 0, -1, "withscores"},
		} {
			got, err1 := through.Do(t.Context(), args...).Result()
			want, err2 := plain.Do(t.Context(), args...).Result()
			if !reflect.DeepEqual(got, want) || (err1 == nil) != (err2 == nil) {
				t.Errorf("version %d, %v: got %v (%v), want %v (%v)", version, args, got, err1, want, err2)
			}
		}
	}
}
