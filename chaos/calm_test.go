package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/internal/redistest"
)

// A control: what may be left of a line goes unnoticed, and nothing else.
func TestResidueIsFound(t *testing.T) {
	f := redistest.Flavours()[0]
	redistest.NeedsControl(t, f)
	c := small(t, f)
	c.Nodes, c.Clients = 1, 0
	w := newWorld(t, c)
	_, err := ask(w.host(0), func(ctx context.Context, c *goredis.Client) (any, error) {
		return c.Pipelined(ctx, func(p goredis.Pipeliner) error {
			p.Set(ctx, "lock", "owner", time.Hour)
			p.Set(ctx, "distmutex:1:token\x00{fine}\x00", 1, time.Hour)
			p.Set(ctx, "distmutex:1:token\x00{endless}\x00", 1, 0)
			p.Set(ctx, "distmutex:1:line\x00{old}\x00", 1, lineLife-10*time.Second)
			p.Set(ctx, "distmutex:1:line\x00{new}\x00", 1, lineLife)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	found := w.residue(w.clock.Now() - int64(5*time.Second))
	for _, key := range []string{"lock", "endless", "new"} {
		if !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, key) }) {
			t.Errorf("%q was not found: %q", key, found)
		}
	}
	if len(found) != 3 {
		t.Errorf("found %q", found)
	}
}

// A control: who has no turn is named.
func TestStarvingIsFound(t *testing.T) {
	f := redistest.Flavours()[0]
	redistest.NeedsControl(t, f)
	c := small(t, f)
	c.Nodes, c.Clients, c.Workers = 1, 1, 2
	w := newWorld(t, c)
	for n := range enough {
		for _, hold := range []string{"c0.0/0.", "c0.0/1."} {
			key := "k0"
			if hold == "c0.0/1." && n == 0 {
				key = ownKey + "c0.0.1" // nobody else wants it
			}
			w.resource.access("read", key, hold+string(rune('0'+n)), int64(n+1), 0)
		}
	}
	if found := w.starving(map[string]int{}); len(found) != 1 || !strings.Contains(found[0], "c0.0/1 ") {
		t.Errorf("found %q", found)
	}
}
