package redis_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// amnesia is a way in which the third of three servers forgets the lock that was
// taken after prepare. It returns the server that the address leads to from then.
type amnesia struct {
	args   []string
	fresh  bool // the next party has never seen the servers before
	all    bool // the holder had all three servers
	inject func(t *testing.T, s []*redistest.Server) func() *redistest.Server
}

func forgetful() map[string]amnesia {
	restart := func(t *testing.T, s []*redistest.Server) func() *redistest.Server {
		return func() *redistest.Server { s[2].Restart(); return s[2] }
	}
	return map[string]amnesia{
		"F2 restart without data":               {inject: restart},
		"F2 restart, and a process never there": {inject: restart, fresh: true},
		"F3 restart with older data":            {inject: older, args: redistest.Durable()},
		"F5 all restart, one by one": {all: true, inject: func(t *testing.T, s []*redistest.Server) func() *redistest.Server {
			return func() *redistest.Server {
				for _, x := range s {
					x.Restart()
				}
				return s[2]
			}
		}},
		"F6 FLUSHALL": {inject: func(t *testing.T, s []*redistest.Server) func() *redistest.Server {
			return func() *redistest.Server { s[2].Wipe(); return s[2] }
		}},
		"F7 promotion of a replica that lagged":      {inject: promotion},
		"F7 promotion, and a process never there":    {inject: promotion, fresh: true},
		"F8 resync from another server":              {inject: resync},
		"F8 resync, and a process never there":       {inject: resync, fresh: true},
		"F4 a majority, one wiped and one restarted": {inject: mixed},
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

// mixed is for a holder of one and three: it is a fault of both, one after the
// other, so that no majority remembers anything.
func mixed(t *testing.T, s []*redistest.Server) func() *redistest.Server {
	return func() *redistest.Server {
		s[1].Wipe()
		s[2].Restart()
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

// A node of three forgets a lock, and a process that can't reach one of the two
// that remember comes for it: in vain, until the lock has ended anyway. Without
// the guard it is let in.
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

// strike sets the stage: a holder, the fault, and who comes next.
func (a amnesia) strike(t *testing.T, f redistest.Flavour, o redis.Options) (until time.Time, token int64, next *party) {
	t.Helper()
	s := redistest.Start(t, f, 3, append(a.args, syncAtOnce...)...)
	everywhere := join(t, o, s...)
	declare(t, everywhere.Quorum)
	second := s[1]
	if !a.all {
		second = nil
	}
	holder := join(t, o, s[0], second, s[2])
	next = join(t, o, s...)
	if !a.fresh {
		next.cycle(t)
	}
	strike := a.inject(t, s)
	held := mustAcquire(t, holder, lease("k", o.MaxTTL))
	if a.all {
		eventually(t, "all have the key", func() bool {
			return len(locks(t, s[0].Client()))+len(locks(t, s[1].Client()))+len(locks(t, s[2].Client())) == 3
		})
	}
	third := strike()
	next.lines[2].to(third.Addr)
	if !a.all {
		next.lines[0].to("")
	}
	return held.Until(), int64(held.Token), next
}

// longest is the longest term tried, for machines that are slow.
const longest = 32 * time.Second

func (a amnesia) guarded(t *testing.T, f redistest.Flavour) {
	var until time.Time
	var token int64
	var next *party
	o := redis.Options{MaxTTL: 2 * time.Second}
	for {
		until, token, next = a.strike(t, f, o)
		if time.Until(until) > o.MaxTTL/2 {
			break
		}
		if o.MaxTTL *= 2; o.MaxTTL > longest {
			t.Fatal("the fault took so long that the test shows nothing")
		}
	}
	got, at, told := next.persist(t, "k", o.MaxTTL, 2*redis.Delay(o.MaxTTL)+20*time.Second)
	switch {
	case at.IsZero():
		t.Fatalf("it never counted again: %+v", told)
	case at.Before(until):
		t.Errorf("two holders: the second was let in %v before the end of the first", until.Sub(at))
	case int64(got.Token) <= token:
		t.Errorf("token %d after %d", got.Token, token)
	}
	if told.uncounted[quorum.Recovering] == 0 || told.left <= 0 || told.left > redis.Delay(o.MaxTTL) {
		t.Errorf("got %+v, want to be told that the node is recovering, and for how long", told)
	}
	t.Logf("let in %v after the end of the first hold; %+v", at.Sub(until), told)
}

// control shows that the fault is one: a slow machine gets longer terms.
func (a amnesia) control(t *testing.T, f redistest.Flavour) {
	for term := 2 * time.Second; term <= longest; term *= 2 {
		until, _, next := a.strike(t, f, redis.Options{MaxTTL: term, Unguarded: true})
		if _, at, _ := next.persist(t, "k", term, time.Until(until)); !at.IsZero() && at.Before(until) {
			return
		}
	}
	t.Error("no two holders even without the guard: the test shows nothing")
}
