package redis_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// trio runs a test on three servers of each flavour that it may kill.
func trio(t *testing.T, test func(t *testing.T, s []*redistest.Server), args ...string) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		t.Parallel()
		test(t, redistest.Start(t, f, 3, args...))
	})
}

// F27. SCRIPT FLUSH is no restart: the script is loaded again within the call.
func TestScriptFlushIsNoRestart(t *testing.T) {
	trio(t, func(t *testing.T, s []*redistest.Server) {
		all := join(t, redis.Options{MaxTTL: 2 * time.Second}, s...)
		declare(t, all.Quorum)
		for range 3 {
			all.cycle(t)
			for _, x := range s {
				if err := x.Client().ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// The operator's word that nothing is lost in a restart makes a node count at
// once, with what it holds; without that word it waits.
func TestDurableServersCountAfterARestart(t *testing.T) {
	trio(t, func(t *testing.T, s []*redistest.Server) {
		o := redis.Options{MaxTTL: 4 * time.Second}
		wary := join(t, o, s...)
		declare(t, wary.Quorum)
		o.Durable = true
		holder, next := join(t, o, s[0], nil, s[2]), join(t, o, s...)
		next.cycle(t)
		mustAcquire(t, holder, lease("k", o.MaxTTL))
		s[2].Restart()
		next.lines[0].to("")
		var e *quorum.UncountedError
		if _, err := next.Acquire(t.Context(), lease("k", o.MaxTTL)); errors.As(err, &e) && e.Left > 0 {
			t.Errorf("got %v from a server that forgets nothing", err)
		}
		eventually(t, "the server counts", func() bool {
			l := lease("other", time.Second)
			_, err := next.Acquire(t.Context(), l)
			next.Release(t.Context(), l)
			return err == nil
		})
		s[2].Restart()
		wary.lines[0].to("")
		_, _, told := wary.persist(t, "third", time.Second, time.Second)
		if told.uncounted[quorum.Recovering] == 0 {
			t.Errorf("without the operator's word: told %+v", told)
		}
	}, redistest.Durable()...)
}

// The term of a lock that a node forgot may be longer than ours ever are.
func TestLargestMaxTTLOfAllClientsCounts(t *testing.T) {
	trio(t, func(t *testing.T, s []*redistest.Server) {
		short := join(t, redis.Options{MaxTTL: time.Second}, s...)
		declare(t, short.Quorum)
		short.cycle(t)
		long := redis.Options{MaxTTL: 20 * time.Second}
		join(t, long, s...).cycle(t)
		short.cycle(t) // sees it
		short.lines[0].to("")
		s[2].Restart()
		_, _, told := short.persist(t, "k", time.Second, time.Second)
		if told.left <= redis.Delay(time.Second) || told.left > redis.Delay(long.MaxTTL) {
			t.Errorf("told %+v, want to wait for the term of 20 s", told)
		}
	})
}

// What no guard can know: the larger MaxTTL of a client that reached no node but
// the one that then forgets it, and one that is out of reach. So MaxTTL is raised
// everywhere before any term is longer; then it is one's own.
func TestMaxTTLThatOnlyTheForgetfulNodeKnew(t *testing.T) {
	trio(t, func(t *testing.T, s []*redistest.Server) {
		short, long := redis.Options{MaxTTL: time.Second}, redis.Options{MaxTTL: 20 * time.Second}
		unaware, raised := join(t, short, nil, s[1], s[2]), join(t, long, nil, s[1], s[2])
		declare(t, join(t, short, s...).Quorum)
		unaware.cycle(t)
		held := mustAcquire(t, join(t, long, s[0], nil, s[2]), lease("k", long.MaxTTL))
		s[2].Restart()
		began := time.Now()
		_, at, _ := unaware.persist(t, "k", time.Second, time.Until(held.Until()))
		if at.IsZero() || at.Sub(began) < redis.Delay(short.MaxTTL) {
			t.Errorf("let in after %v: doc/guarantees.md says that it is after the client's own time", at.Sub(began))
		}
		if _, at, told := raised.persist(t, "k", time.Second, 2*time.Second); !at.IsZero() || told.left <= redis.Delay(short.MaxTTL) {
			t.Errorf("with MaxTTL raised: let in at %v, told %+v", at, told)
		}
	})
}

// A node that is made a replica is set aside: as one, or for its silence, since
// go-redis asks a replica again for a while. When it is a primary again, it may
// have forgotten locks.
func TestNodeThatBecomesAReplicaIsSetAside(t *testing.T) {
	trio(t, func(t *testing.T, s []*redistest.Server) {
		var log logs
		all := join(t, redis.Options{MaxTTL: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}, s...)
		declare(t, all.Quorum)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the log:\n%s", log.String())
			}
		})
		says := func(words ...string) {
			t.Helper()
			eventually(t, "the log says "+strings.Join(words, ", "), func() bool {
				time.Sleep(50 * time.Millisecond) // a replica refuses slowly, since go-redis asks it again
				all.cycle(t)
				return slices.ContainsFunc(strings.Split(log.String(), "\n"), func(line string) bool {
					return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
				})
			})
		}
		all.cycle(t)
		follow(t, s[2], s[1].Addr)
		says("set aside", "node3")
		s[2].Client().Do(t.Context(), "replicaof", "no", "one")
		says("in use again", "node3")
	}, syncAtOnce...)
}

// An address that moves to another member's server is not a second vote.
func TestAddressThatMovesToAnotherMember(t *testing.T) {
	trio(t, func(t *testing.T, s []*redistest.Server) {
		all := join(t, redis.Options{MaxTTL: time.Second}, s...)
		declare(t, all.Quorum)
		all.cycle(t)
		all.lines[0].to("")
		all.lines[2].to(s[1].Addr)
		got, at, told := all.persist(t, "k", time.Second, 2*redis.Delay(time.Second))
		if !at.IsZero() {
			t.Errorf("one server gave two votes of three: token %d, told %+v", got.Token, told)
		}
		want := lease("k", time.Second)
		_, err := all.Acquire(t.Context(), want)
		if err == nil || !strings.Contains(err.Error(), "one server twice") {
			t.Errorf("got %v, want to be told of two addresses of one server", err)
		}
		all.Release(t.Context(), want)
		all.lines[2].to(s[2].Addr)
		if _, at, told := all.persist(t, "k", time.Second, 30*time.Second); at.IsZero() {
			t.Errorf("the server does not count again: %+v", told)
		}
	})
}

// Servers of which nothing is known count after a while, or when they are
// declared new: once, all of them, and empty.
func TestNewServers(t *testing.T) {
	trio(t, func(t *testing.T, s []*redistest.Server) {
		o := redis.Options{MaxTTL: time.Second}
		all := join(t, o, s...)
		if err := s[1].Client().Set(t.Context(), "x", "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := all.DeclareNew(t.Context()); !errors.Is(err, redis.ErrNotNew) || !strings.Contains(err.Error(), "node2") || strings.Contains(err.Error(), "node1") {
			t.Errorf("one has a key: got %v, want ErrNotNew of node2 alone", err)
		}
		for i, x := range s {
			if n := x.Client().Exists(t.Context(), redis.MarkerKey).Val(); n != 0 {
				t.Errorf("node %d was declared new, though not all of them are", i+1)
			}
		}
		s[1].Wipe()
		s[2].Freeze()
		if err := join(t, o, s[0], s[1], nil).DeclareNew(t.Context()); err == nil || errors.Is(err, redis.ErrNotNew) || !strings.Contains(err.Error(), "node3") {
			t.Errorf("one is away: got %v, want an error of node3 that is not ErrNotNew", err)
		}
		s[2].Thaw()
		if err := all.DeclareNew(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.cycle(t)
		if err := all.DeclareNew(t.Context()); !errors.Is(err, redis.ErrNotNew) {
			t.Errorf("the second time: got %v", err)
		}
		for _, x := range s {
			x.Restart()
		}
		_, at, told := join(t, o, s...).persist(t, "k", time.Second, 30*time.Second)
		if at.IsZero() || told.uncounted[quorum.Recovering] == 0 {
			t.Errorf("undeclared: let in at %v, told %+v", at, told)
		}
	})
}
