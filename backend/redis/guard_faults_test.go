package redis_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// amnesia is a way in which the third of three servers forgets the lock that was
// taken after prepare.
type amnesia struct {
	args []string
	all  bool // the holder had all three servers
	// prepare returns the fault, which returns the server that the third's
	// address leads to from then.
	prepare func(t *testing.T, s []*redistest.Server) (inject func() *redistest.Server)
}

func forgetful() map[string]amnesia {
	return map[string]amnesia{
		"F2 restart without data":                 {prepare: restart},
		"F3 restart with older data":              {prepare: older, args: redistest.Durable()},
		"F4 a majority, one wiped, one restarted": {prepare: mixed},
		"F5 all restart, one by one":              {prepare: rolling, all: true},
		"F6 FLUSHALL":                             {prepare: wipe},
		"F7 promotion of a replica that lagged":   {prepare: promotion},
		"F8 resync from another server":           {prepare: resync},
	}
}

func restart(_ *testing.T, s []*redistest.Server) func() *redistest.Server {
	return func() *redistest.Server { s[2].Restart(); return s[2] }
}

func wipe(_ *testing.T, s []*redistest.Server) func() *redistest.Server {
	return func() *redistest.Server { s[2].Wipe(); return s[2] }
}

// mixed befalls both servers that the next party reaches.
func mixed(_ *testing.T, s []*redistest.Server) func() *redistest.Server {
	return func() *redistest.Server { s[1].Wipe(); s[2].Restart(); return s[2] }
}

func rolling(_ *testing.T, s []*redistest.Server) func() *redistest.Server {
	return func() *redistest.Server {
		for _, x := range s {
			x.Restart()
		}
		return s[2]
	}
}

// older puts back what was on disk before the lock was taken.
func older(t *testing.T, s []*redistest.Server) func() *redistest.Server {
	c := s[2].Client()
	dir := filepath.Join(c.ConfigGet(t.Context(), "dir").Val()["dir"], "appendonlydir")
	backup := filepath.Join(t.TempDir(), "older")
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return func() *redistest.Server {
		s[2].Kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(backup)); err != nil {
			t.Fatal(err)
		}
		s[2].Restart()
		if n := c.DBSize(t.Context()).Val(); n == 0 {
			t.Error("the older data is not there: the fault was not the one meant")
		}
		return s[2]
	}
}

// syncAtOnce makes a server send its data to a replica without waiting for more.
var syncAtOnce = []string{"--repl-diskless-sync-delay", "0"}

func promotion(t *testing.T, s []*redistest.Server) func() *redistest.Server {
	replica := redistest.Start(t, s[2].Flavour, 1, syncAtOnce...)[0]
	follow(t, replica, s[2].Addr)
	replica.Client().Do(t.Context(), "replicaof", "no", "one") // it lags from now on
	return func() *redistest.Server { return replica }
}

func resync(t *testing.T, s []*redistest.Server) func() *redistest.Server {
	other := redistest.Start(t, s[2].Flavour, 1, syncAtOnce...)[0]
	return func() *redistest.Server {
		follow(t, s[2], other.Addr)
		s[2].Client().Do(t.Context(), "replicaof", "no", "one")
		return s[2]
	}
}

// follow makes one server a replica of another and waits until it is in sync.
func follow(t *testing.T, s *redistest.Server, addr string) {
	t.Helper()
	c := s.Client()
	host, port, _ := strings.Cut(addr, ":")
	if err := c.Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica is in sync", func() bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
}

// A node of three forgets a lock, and processes that can't reach one of the two
// that remember come for it, one that has seen the servers before and one that
// has not: in vain, until the lock has ended anyway. Without the guard they get it.
func TestForgetfulNodeDoesNotCount(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		for name, a := range forgetful() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				t.Run("guarded", func(t *testing.T) { a.guarded(t, f) })
				t.Run("control", func(t *testing.T) { a.control(t, f) })
			})
		}
	})
}

// scene is what is there after the fault.
type scene struct {
	held        backend.Lease
	next, fresh *party // who come for the key
}

// Terms that are tried, for machines that are slow.
const (
	shortest = 1500 * time.Millisecond
	longest  = 32 * time.Second
)

// play sets the stage and strikes.
func (a amnesia) play(t *testing.T, f redistest.Flavour, o redis.Options) (s scene) {
	t.Helper()
	servers := redistest.Start(t, f, 3, append(a.args, syncAtOnce...)...)
	all := join(t, o, servers...)
	declare(t, all.Quorum)
	holder := all
	if !a.all {
		holder = join(t, o, servers[0], nil, servers[2])
	}
	s.next, s.fresh = join(t, o, servers...), join(t, o, servers...)
	s.next.cycle(t)
	inject := a.prepare(t, servers)
	s.held = mustAcquire(t, holder, lease("k", o.MaxTTL))
	if a.all {
		eventually(t, "all have the key", func() bool {
			return !slices.ContainsFunc(servers, func(x *redistest.Server) bool { return len(locks(t, x.Client())) == 0 })
		})
	}
	third := inject()
	for _, p := range []*party{s.next, s.fresh} {
		p.lines[2].to(third.Addr)
		if !a.all {
			p.lines[0].to("")
		}
	}
	return s
}

func (a amnesia) guarded(t *testing.T, f redistest.Flavour) {
	var s scene
	o := redis.Options{MaxTTL: shortest}
	for {
		s = a.play(t, f, o)
		if time.Until(s.held.Until()) > o.MaxTTL/2 {
			break
		}
		if o.MaxTTL *= 2; o.MaxTTL > longest {
			t.Fatal("the fault took so long that the test shows nothing")
		}
	}
	until := s.held.Until()
	var others sync.WaitGroup
	others.Go(func() {
		if _, at, _ := s.fresh.persist(t, "k", o.MaxTTL, time.Until(until)-100*time.Millisecond); !at.IsZero() && at.Before(until) {
			t.Error("two holders: a process that was never there was let in")
		}
	})
	defer others.Wait()
	got, at, told := s.next.persist(t, "k", o.MaxTTL, 2*redis.Delay(o.MaxTTL)+20*time.Second)
	switch {
	case at.IsZero():
		t.Fatalf("it never counted again: %+v", told)
	case at.Before(until):
		t.Errorf("two holders: the second was let in %v before the end of the first", until.Sub(at))
	case got.Token <= s.held.Token:
		t.Errorf("token %d after %d", got.Token, s.held.Token)
	}
	if told.uncounted[quorum.Recovering] == 0 || told.left <= 0 || told.left > redis.Delay(o.MaxTTL) {
		t.Errorf("got %+v, want to be told that the node is recovering, and for how long", told)
	}
	t.Logf("let in %v after the end of the first hold; %+v", at.Sub(until), told)
}

// control shows that the fault is one.
func (a amnesia) control(t *testing.T, f redistest.Flavour) {
	for term := shortest; term <= longest; term *= 2 {
		s := a.play(t, f, redis.Options{MaxTTL: term, Unguarded: true})
		until := s.held.Until()
		if _, at, _ := s.next.persist(t, "k", term, time.Until(until)); !at.IsZero() && at.Before(until) {
			return
		}
	}
	t.Error("no two holders even without the guard: the test shows nothing")
}
