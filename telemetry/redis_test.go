package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/telemetry"
)

// On real servers, one of which dies: each is measured by its address, contention
// is no failure, and no owner is exported (Cases 53 and 54).
func TestQuorumOnServers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		servers := redistest.Start(t, f, 3)
		r := newRig(t, nil)
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		states := &states{}
		var clients []goredis.UniversalClient
		for _, s := range servers {
			clients = append(clients, s.Client())
		}
		q, err := redis.NewQuorum(clients, &redis.Options{
			MaxTTL: 2 * time.Second, Node: r.tel.Middleware,
			Quorum: quorum.Options{OnNode: func(s backend.NodeState) {
				r.tel.OnNode(s)
				states.set(s)
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		b := backend.Wrap(q, r.tel.Middleware, telemetry.Log(log))
		var pair [2]*mutex.Leased
		for i := range pair {
			if pair[i], err = mutex.New(b, "k", &mutex.Options{TTL: time.Second}); err != nil {
				t.Fatal(err)
			}
		}

		// Servers that have just started may have to wait before they count.
		var owners []string
		until(t, func() bool { return pair[0].Lock(t.Context()) == nil })
		if err := pair[0].Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		until(t, func() bool {
			owners = append(owners, servedCycle(t, pair, clients[0])...)
			return states.aside() == ""
		})
		servers[2].Kill()
		until(t, func() bool {
			owners = append(owners, servedCycle(t, pair, clients[0])...)
			return states.aside() == servers[2].Addr
		})
		if len(owners) == 0 {
			t.Error("no owner was seen: the check is blind")
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}

		metrics := r.metrics()
		for _, want := range []string{
			`waiting{} 0`, `held{} 0`, fmt.Sprintf("node.aside{node=%s} 1", servers[2].Addr),
		} {
			if !slices.Contains(metrics, want) {
				t.Errorf("no %s in %s", want, metrics)
			}
		}
		all := strings.Join(metrics, "\n")
		for _, want := range []string{
			`acquire.duration{outcome=held} `, `acquire.duration{outcome=ok} `,
			fmt.Sprintf("node.duration{node=%s,operation=acquire,outcome=ok} ", servers[0].Addr),
			fmt.Sprintf("node.duration{node=%s,operation=acquire,outcome=held} ", servers[0].Addr),
		} {
			if !strings.Contains(all, want) {
				t.Errorf("no %s in\n%s", want, all)
			}
		}
		if strings.Contains(all, "error.type=held") {
			t.Errorf("contention is an error in\n%s", all)
		}
		all += out.String() + fmt.Sprintf("%+v", tracetest.SpanStubsFromReadOnlySpans(r.spans.Ended()))
		for _, owner := range owners {
			if len(owner) < 12 || strings.Contains(all, owner[:12]) {
				t.Errorf("owner %q was exported", owner)
			}
		}
	})
}

// states remembers what OnNode was told.
type states struct {
	mu  sync.Mutex
	now map[string]bool
}

func (s *states) set(n backend.NodeState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		s.now = make(map[string]bool)
	}
	s.now[n.Name] = n.Aside
}

// aside are the nodes set aside.
func (s *states) aside() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for name, aside := range s.now {
		if aside {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// until waits for something that takes its time on a real server.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(20 * ms) {
		if time.Since(begun) > time.Minute {
			t.Fatal("nothing happened for a minute")
		}
	}
}

// servedCycle locks and unlocks, has another one refused in between, and returns
// the owner as the server knows it.
func servedCycle(t *testing.T, pair [2]*mutex.Leased, server goredis.UniversalClient) []string {
	t.Helper()
	if err := pair[0].Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	owner, err := server.Get(context.Background(), "k").Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		t.Error(err)
	}
	if err := pair[1].TryLock(t.Context()); !errors.Is(err, mutex.ErrHeld) {
		t.Errorf("another lock: %v", err)
	}
	if err := pair[0].Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if owner == "" {
		return nil // the other two had a majority first
	}
	return []string{owner}
}
