package redistest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// lent is a server that runs already and goes from test to test.
type lent struct {
	addr string
	user string // the test that has it; empty: nobody
}

var (
	lendMu sync.Mutex
	lendOn = sync.NewCond(&lendMu)
)

// ask finds out what runs at addresses.
func (inv *inventory) ask(addrs []string) {
	for _, addr := range addrs {
		addr = strings.TrimSpace(addr)
		f, err := askOne(addr)
		if err != nil {
			inv.notes = append(inv.notes, err.Error())
			continue
		}
		inv.running[f] = append(inv.running[f], &lent{addr: addr})
	}
}

func askOne(addr string) (Flavour, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // a container may still be starting
	defer cancel()
	c := newClient(addr)
	defer c.Close()
	for {
		info, err := c.Info(ctx, "server").Result()
		if err == nil {
			product, version := "redis", field(info, "redis_version")
			if field(info, "server_name") == "valkey" {
				product, version = "valkey", field(info, "valkey_version")
			}
			if f := flavourOf(product, version); f != "" {
				return f, nil
			}
			return "", fmt.Errorf("%s is %s %s, which no flavour fits", addr, product, version)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s does not answer: %w", addr, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// field reads one line of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// borrow waits for n of the servers and gives them back when the test ends.
func borrow(tb testing.TB, f Flavour, n int) []*Server {
	tb.Helper()
	all := found().running[f]
	lendMu.Lock()
	defer lendMu.Unlock()
	for {
		var free []*lent
		usable := 0
		for _, l := range all {
			if l.user == "" {
				free = append(free, l)
			}
			// What an enclosing test has will not come back while this one waits.
			if !strings.HasPrefix(tb.Name()+"/", l.user+"/") {
				usable++
			}
		}
		if usable < n {
			tb.Skipf("not checked: this takes %d more servers of %s, and %s has %d to give", n, f, serversEnv, usable)
		}
		if len(free) >= n {
			return take(tb, f, free[:n])
		}
		lendOn.Wait()
	}
}

func take(tb testing.TB, f Flavour, ls []*lent) []*Server {
	var all []*Server
	for _, l := range ls {
		l.user = tb.Name()
		all = append(all, &Server{Addr: l.addr, Flavour: f, tb: tb})
	}
	tb.Cleanup(func() {
		lendMu.Lock()
		defer lendMu.Unlock()
		for _, l := range ls {
			l.user = ""
		}
		lendOn.Broadcast()
	})
	for _, s := range all {
		s.Wipe()
	}
	return all
}

func newClient(addr string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{
		Addr:                  addr,
		Protocol:              2,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
}
