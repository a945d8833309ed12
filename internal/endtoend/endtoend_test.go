// Package endtoend runs the whole: mutexes over real servers, as a program
// would use them.
package endtoend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/retry"
)

// dial is what one process would have: clients and a backend of its own. It
// uses go-redis as it comes, not as Open sets it up.
func dial(t testing.TB, servers []*redistest.Server) backend.Backend {
	t.Helper()
	return dialWith(t, servers, nil)
}

func dialWith(t testing.TB, servers []*redistest.Server, o *redis.Options) backend.Backend {
	t.Helper()
	var clients []goredis.UniversalClient
	for _, s := range servers {
		c := goredis.NewClient(&goredis.Options{Addr: s.Addr})
		t.Cleanup(func() { c.Close() })
		clients = append(clients, c)
	}
	if len(clients) == 1 {
		b, err := redis.New(clients[0], o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closed(t, b) })
		return b
	}
	q, err := redis.NewQuorum(clients, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.DeclareNew(t.Context()); err != nil && !errors.Is(err, redis.ErrNotNew) {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, q) })
	return q
}

func closed(t testing.TB, c interface{ Close(context.Context) error }) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("closing: %v", err)
	}
}

func session(t testing.TB, b backend.Backend, o *mutex.Options) *mutex.Session {
	t.Helper()
	s, err := mutex.NewSession(b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	return s
}

// A hold of ten terms on five nodes, one of which is killed, comes back empty,
// freezes, thaws, and is killed again: it is not lost, and nobody else gets in.
func TestHoldOutlivesASickNode(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		servers := redistest.Start(t, f, 5)
		o := &mutex.Options{TTL: 600 * time.Millisecond}
		h, err := session(t, dial(t, servers), o).Mutex("job").Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		intruder := session(t, dial(t, servers), o).Mutex("job")
		stop := make(chan struct{})
		var tries int
		var watch sync.WaitGroup
		watch.Go(func() {
			for ; ; tries++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := intruder.TryLock(t.Context()); err == nil {
					t.Errorf("a second holder, with token %d", intruder.Current().Token())
					intruder.Unlock(t.Context())
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
		sick := servers[2]
		for _, befall := range []func(){sick.Kill, sick.Restart, sick.Freeze, sick.Thaw, sick.Kill, sick.Restart} {
			befall()
			select {
			case <-h.Lost():
				t.Fatalf("lost: %v", h.Err())
			case <-time.After(time.Second):
			}
		}
		close(stop)
		watch.Wait()
		if err := h.Unlock(t.Context()); err != nil {
			t.Errorf("unlock: %v", err)
		}
		if tries < 100 {
			t.Errorf("only %d tries to get in: the test shows little", tries)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		next, err := intruder.Hold(ctx)
		if err != nil {
			t.Fatalf("the next holder: %v", err)
		}
		if next.Token() <= h.Token() {
			t.Errorf("token %d after %d", next.Token(), h.Token())
		}
		if err := next.Unlock(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Nobody waits for a frozen minority.
func TestFrozenMinorityIsNotWaitedFor(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		servers := redistest.Start(t, f, 5)
		m := session(t, dial(t, servers), nil).Mutex("cycle")
		healthy := cycles(t, m, 200)
		for i, s := range servers[1:3] {
			s.Freeze()
			sick := cycles(t, m, 600)
			t.Logf("healthy: median %v, 99%% %v; %d frozen: median %v, 99%% %v, longest %v", healthy[100], healthy[198], i+1, sick[300], sick[594], sick[599])
			if sick[599] > 500*time.Millisecond {
				t.Errorf("%d frozen: a cycle took %v: it waited for a frozen node", i+1, sick[599])
			}
		}
		for _, s := range servers[1:3] {
			s.Thaw()
		}
		empty(t, servers, "cycle")
	})
}

func cycles(t testing.TB, m *mutex.Leased, n int) []time.Duration {
	var took []time.Duration
	for range n {
		begun := time.Now()
		if err := m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took
}

// empty waits for what is still under way and expects no key anywhere.
func empty(t testing.TB, servers []*redistest.Server, key string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second) // half a term
	for _, s := range servers {
		for s.Client().Exists(t.Context(), key).Val() != 0 {
			if time.Now().After(deadline) {
				t.Errorf("%s still has the key", s.Addr)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// Clients with connections of their own never lose an update of a counter that
// only the lock protects, while a node of five comes and goes.
func TestCounterLosesNoUpdate(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		for _, nodes := range []int{1, 5} {
			t.Run(fmt.Sprint(nodes), func(t *testing.T) {
				servers := redistest.Start(t, f, nodes)
				const clients, each = 6, 25
				counter := 0
				var all sync.WaitGroup
				for range clients {
					m := session(t, backend.Wrap(dial(t, servers), retry.Middleware(retry.FullJitter(5*time.Millisecond, 100*time.Millisecond))), nil).Mutex("counter")
					all.Go(func() {
						for range each {
							counted := false
							err := m.Do(t.Context(), func(context.Context) error {
								counter++
								counted = true
								return nil
							})
							// On a busy machine a release may be answered too late, and its
							// repetition find the next holder's lock.
							if err != nil && !(counted && errors.Is(err, mutex.ErrLost)) {
								t.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				if counter != clients*each {
					t.Errorf("counted %d, want %d", counter, clients*each)
				}
				empty(t, servers, "counter")
			})
		}
	})
}

// Redlock clients of any make exclude us and are excluded.
func TestPlainClientIsExcluded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		servers := redistest.Start(t, f, 3)
		m := session(t, dial(t, servers), nil).Mutex("shared")
		if err := m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, s := range servers {
			if s.Client().SetNX(t.Context(), "shared", "plain", time.Minute).Val() {
				t.Errorf("%s let a plain client in", s.Addr)
			}
		}
		if err := m.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		empty(t, servers, "shared")
		for _, s := range servers[:2] {
			s.Client().SetNX(t.Context(), "shared", "plain", time.Minute)
		}
		if err := m.TryLock(t.Context()); !errors.Is(err, mutex.ErrHeld) {
			t.Errorf("got %v while a plain client holds it, want ErrHeld", err)
		}
	})
}

// BenchmarkCycle is a Lock and an Unlock on five nodes, none, one or two of them
// frozen.
func BenchmarkCycle(b *testing.B) {
	for _, f := range redistest.Flavours() {
		for frozen := range 3 {
			b.Run(fmt.Sprintf("%s/frozen=%d", f, frozen), func(b *testing.B) {
				redistest.NeedsControl(b, f)
				servers := redistest.Start(b, f, 5)
				m := session(b, dial(b, servers), nil).Mutex("cycle")
				cycles(b, m, 100)
				for _, s := range servers[:frozen] {
					s.Freeze()
					b.Cleanup(s.Thaw) // before the clients are closed, which waits for it
				}
				cycles(b, m, 1000) // until they are set aside
				b.ResetTimer()
				took := cycles(b, m, b.N)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/median")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
			})
		}
	}
}
