package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// grant is what a Wait returned.
type grant struct {
	backend.Lease
	err error
}

// standing runs Wait beside the test, and returns when it has its place in line.
func standing(t *testing.T, b backend.Backend, c *goredis.Client, want backend.Lease) <-chan grant {
	t.Helper()
	w, _ := backend.As[backend.Waiter](b)
	before := c.ZCard(t.Context(), redis.LineKey(want.Key)).Val()
	got := make(chan grant, 1)
	go func() {
		l, err := w.Wait(t.Context(), want)
		got <- grant{l, err}
	}()
	eventually(t, "it stands in line", func() bool {
		return c.ZCard(context.Background(), redis.LineKey(want.Key)).Val() > before
	})
	return got
}

func (g grant) of(t *testing.T, want backend.Lease) backend.Lease {
	t.Helper()
	if g.err != nil || g.Owner != want.Owner || g.TTL <= 0 {
		t.Fatalf("wait: got %v with a term of %v, want a grant", g.err, g.TTL)
	}
	return g.Lease
}

// Who waits gets the lock in the order of coming, whichever client it is of, with
// tokens that rise; and it lasts when it is renewed.
func TestLineIsFirstComeFirstServed(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		clients := []*redis.Backend{newBackend(t, s.Client()), newBackend(t, worst(t, s.Addr))}
		holder, last := clients[0], mustAcquire(t, clients[0], lease("k", 20*time.Second))
		var wants []backend.Lease
		var all []<-chan grant
		for i := range 6 {
			wants = append(wants, lease("k", 20*time.Second))
			all = append(all, standing(t, clients[i%2], c, wants[i]))
		}
		for i, want := range wants {
			mustRelease(t, holder, last)
			got := (<-all[i]).of(t, want)
			if got.Token <= last.Token {
				t.Errorf("token %d after %d", got.Token, last.Token)
			}
			holder, last = clients[i%2], got
			if err := holder.Renew(t.Context(), backend.Lease{Key: "k", Owner: got.Owner, TTL: want.TTL, Token: got.Token, Start: time.Now()}); err != nil {
				t.Errorf("renew: %v", err)
			}
		}
		mustRelease(t, holder, last)
		if n := c.Exists(t.Context(), "k", redis.LineKey("k")).Val(); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

// A process that has gone is passed over in the same step.
func TestLinePassesOverAProcessThatHasGone(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b, gone := newBackend(t, s.Client()), newBackend(t, s.Client())
		held := mustAcquire(t, b, lease("k", 20*time.Second))
		first, second := lease("k", 20*time.Second), lease("k", 20*time.Second)
		lost := standing(t, gone, c, first)
		got := standing(t, b, c, second)
		closeWithin(t, gone)
		if g := <-lost; !errors.Is(g.err, goredis.ErrClosed) {
			t.Errorf("wait: got %v, want goredis.ErrClosed", g.err)
		}
		eventually(t, "nobody listens for it", func() bool { return subscribers(t, c) == 1 })
		mustRelease(t, b, held)
		if owner := c.Get(t.Context(), "k").Val(); owner != second.Owner {
			t.Error("the lock is not the second one's")
		}
		mustRelease(t, b, (<-got).of(t, second))
	})
}

// One that listens and does nothing costs two seconds, as one that was stopped.
func TestLinePassesOverAProcessThatIsStopped(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b := newBackend(t, s.Client())
		held := mustAcquire(t, b, lease("k", 20*time.Second))
		listens := c.Subscribe(ctx, "distmutex:1:wake:stopped")
		defer listens.Close()
		if _, err := listens.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		c.ZAdd(ctx, redis.LineKey("k"), goredis.Z{Score: 1, Member: "7 distmutex:1:wake:stopped 20000 0 nobody"})
		want := lease("k", 20*time.Second)
		got := standing(t, b, c, want)
		mustRelease(t, b, held)
		if left := c.PTTL(ctx, "k").Val(); c.Get(ctx, "k").Val() != "nobody" || left > 2*time.Second {
			t.Errorf("it is %q for %v, want nobody's for two seconds at most", c.Get(ctx, "k").Val(), left)
		}
		mustRelease(t, b, (<-got).of(t, want))
	})
}

// Who missed the news, as its connection broke, has the lock all the same, or its
// old place.
func TestPlaceInLineOutlivesTheConnection(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		c, ctx := s.Client(), t.Context()
		b, other := newBackend(t, worst(t, s.Addr)), newBackend(t, s.Client())
		held := mustAcquire(t, other, lease("k", 20*time.Second))
		want, behind := lease("k", 20*time.Second), lease("k", 20*time.Second)
		got := standing(t, b, c, want)
		was := c.ZRangeWithScores(ctx, redis.LineKey("k"), 0, 0).Val()[0]
		next := standing(t, other, c, behind)
		c.ZRem(ctx, redis.LineKey("k"), was.Member) // as by a release while nobody listened
		c.ClientKillByFilter(ctx, "type", "pubsub")
		eventually(t, "it has its place again", func() bool {
			line := c.ZRangeWithScores(ctx, redis.LineKey("k"), 0, 0).Val()
			return len(line) == 1 && line[0] == was
		})
		eventually(t, "both listen", func() bool { return subscribers(t, c) == 2 })
		mustRelease(t, other, held)
		mustRelease(t, b, (<-got).of(t, want))
		mustRelease(t, other, (<-next).of(t, behind))
	})
}

// Nobody is told when a plain client deletes the lock: who comes next finds it, for
// the first in line.
func TestLockThatIsDeletedByHandIsTheFirstOnes(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b := newBackend(t, s.Client())
		mustAcquire(t, b, lease("k", 20*time.Second))
		first, second := lease("k", 20*time.Second), lease("k", 20*time.Second)
		got := standing(t, b, c, first)
		c.Del(t.Context(), "k")
		later := make(chan grant, 1)
		go func() {
			l, err := b.Wait(t.Context(), second)
			later <- grant{l, err}
		}()
		mustRelease(t, b, (<-got).of(t, first))
		mustRelease(t, b, (<-later).of(t, second))
	})
}

// Those who stand in line and those who do not exclude each other, and nobody is
// left waiting.
func TestLineBesideClientsThatStandInNone(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client()
		b, hinted := newBackend(t, s.Client()), unordered(t, s.Client())
		held := mustAcquire(t, b, lease("k", 20*time.Second))
		hint := waiting(t, hinted, t.Context(), "k")
		eventually(t, "it listens", func() bool { return hinted.Listening("k") })
		want := lease("k", 20*time.Second)
		got := standing(t, b, c, want)
		mustRelease(t, b, held)
		held = (<-got).of(t, want)
		if _, err := hinted.Acquire(t.Context(), lease("k", time.Second)); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("acquire: got %v, want ErrHeld", err)
		}
		mustRelease(t, b, held) // nobody is in line
		if err := <-hint; err != nil {
			t.Error(err)
		}
		held = mustAcquire(t, hinted, lease("k", 20*time.Second))
		want = lease("k", 20*time.Second)
		got = standing(t, b, c, want)
		mustRelease(t, hinted, held) // knows of no line
		mustRelease(t, b, (<-got).of(t, want))
	})
}

// honoursFloors passes a lock to one who asked for a token far ahead.
func honoursFloors(t *testing.T, b, other backend.Backend) {
	held := mustAcquire(t, b, lease("floor", 10*time.Second))
	want := lease("floor", 10*time.Second)
	want.Token = held.Token + 1_000_000_000
	got := make(chan grant, 1)
	go func() {
		w, _ := backend.As[backend.Waiter](other)
		l, err := w.Wait(t.Context(), want)
		got <- grant{l, err}
	}()
	mustRelease(t, b, held)
	if g := (<-got).of(t, want); g.Token < want.Token {
		t.Errorf("noticed: token %d for a floor of %d", g.Token, want.Token)
	}
}

// givesPlacesUp waits for a while.
func givesPlacesUp(t *testing.T, b backend.Backend, c *goredis.Client) {
	held := mustAcquire(t, b, lease("place", 10*time.Second))
	want := lease("place", 10*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	w, _ := backend.As[backend.Waiter](b)
	ended := make(chan error, 1)
	go func() {
		_, err := w.Wait(ctx, want)
		ended <- err
	}()
	eventually(t, "it stands in line", func() bool { return c.ZCard(t.Context(), redis.LineKey("place")).Val() == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	mustRelease(t, b, want)
	if n := c.ZCard(t.Context(), redis.LineKey("place")).Val(); n != 0 {
		t.Errorf("noticed: %d stand in line", n)
	}
	mustRelease(t, b, held)
}

// What was passed counts from a moment that is surely before it was: by the
// server's clock since its last answer, less the drift, from before that was asked
// for. What a clock that was set says counts for nothing.
func TestWhatWasPassedOnCountsFromBefore(t *testing.T) {
	now := time.Now()
	server := time.UnixMicro(1_800_000_000_000_000)
	want := lease("k", 10*time.Second)
	for name, c := range map[string]struct {
		ago    time.Duration // since the question was sent
		after  time.Duration // by the server's clock, from its answer to the grant
		starts time.Duration // after the question
		void   bool
	}{
		"at once":                 {ago: 5 * time.Millisecond, after: time.Millisecond, starts: -1010 * time.Microsecond},
		"before the answer":       {ago: 5 * time.Millisecond, after: -time.Second, starts: -1012 * time.Millisecond},
		"long before the answer":  {ago: 5 * time.Millisecond, after: -2 * time.Second, void: true},
		"a second later":          {ago: time.Second, after: 900 * time.Millisecond, starts: 889 * time.Millisecond},
		"a clock set back":        {ago: time.Second, after: -time.Hour, void: true},
		"a clock set ahead":       {ago: time.Second, after: time.Hour, void: true},
		"news that is too late":   {ago: time.Minute, after: time.Second, void: true},
		"a machine that slept on": {ago: time.Second, after: 10 * time.Second, void: true},
	} {
		sent := now.Add(-c.ago)
		got, ok := redis.Given(fmt.Sprintf("1 77 2000 %d", server.Add(c.after).UnixMicro()), want, sent, server)
		switch {
		case ok == c.void:
			t.Errorf("%s: it counts: %v", name, ok)
		case ok && (got.TTL != 2*time.Second || got.Token != 77 || !got.Start.Equal(sent.Add(c.starts))):
			t.Errorf("%s: token %d for %v from %v after it was asked for, want 77 for 2 s from %v", name, got.Token, got.TTL, got.Start.Sub(sent), c.starts)
		}
	}
}

// Whatever arrives in an inbox gives at most what a release passes on.
func FuzzNews(f *testing.F) {
	for _, s := range []string{"1 77 2000 1800000000000000", "1 77 99999999999 1", "2 77 2000 1", "1 -1 2000 1", "", "1 0 0 0", strings.Repeat("9", 30) + " 1 1 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, message string) {
		now := time.Now()
		got, ok := redis.Given(message, lease("k", 10*time.Second), now.Add(-time.Second), time.UnixMicro(1_800_000_000_000_000))
		if ok && (got.TTL > 2*time.Second || got.TTL <= 0 || got.Token < 0 || got.Token > backend.MaxToken || got.Start.After(time.Now())) {
			t.Errorf("%q gives token %d for %v from %v", message, got.Token, got.TTL, got.Start)
		}
	})
}
