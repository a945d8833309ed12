package telemetry_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
	"github.com/distmutex/distmutex/mutex"
)

// text is a log that several goroutines write.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *text) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

// has says whether a line has all the words.
func (w *text) has(words ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(strings.Split(w.buf.String(), "\n"), func(line string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
	})
}

// A server that restarted empty is well and does not count for a while: a line in
// the log and the metric say when that begins, why, and when it ends.
func TestNodeThatForgotIsMeasuredAsAside(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		servers := redistest.Start(t, f, 3)
		var clients []goredis.UniversalClient
		for _, s := range servers {
			clients = append(clients, s.Client())
		}
		r, log := newRig(t, nil), new(text)
		q, err := redis.NewQuorum(clients, &redis.Options{
			MaxTTL: time.Second, Logger: slog.New(slog.NewTextHandler(log, nil)), Quorum: quorum.Options{OnNode: r.tel.OnNode},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.DeclareNew(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, err := mutex.New(q, "k", &mutex.Options{TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		becomes := func(aside int, words ...string) {
			t.Helper()
			until(t, func() bool {
				if err := m.Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := m.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				return slices.Contains(r.metrics(), fmt.Sprintf("node.aside{node=%s} %d", servers[2].Addr, aside)) &&
					log.has(append(words, servers[2].Addr)...)
			})
		}
		servers[2].Restart()
		becomes(1, "set aside", "may have forgotten locks")
		becomes(0, "in use again")
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
