package redis_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// plot makes servers forget a lock that is held, and says who comes for it and
// from when on the servers that have to count for that don't. It returns nil
// where the machine was too slow.
type plot func(t *testing.T, s []*redistest.Server, o redis.Options) *ambush

type ambush struct {
	held   backend.Lease
	next   *party
	struck time.Time
}

// controlled plays a plot with the guard, which has to hold, and without, when
// there have to be two holders.
func controlled(t *testing.T, nodes int, play plot) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		t.Run("guarded", func(t *testing.T) {
			t.Parallel()
			slower(t, func(term time.Duration) bool {
				o := redis.Options{MaxTTL: term}
				a := play(t, redistest.Start(t, f, nodes), o)
				if a != nil {
					a.wantNone(t, o)
				}
				return a != nil
			})
		})
		t.Run("control", func(t *testing.T) {
			t.Parallel()
			slower(t, func(term time.Duration) bool {
				a := play(t, redistest.Start(t, f, nodes), redis.Options{MaxTTL: term, Unguarded: true})
				return a != nil && a.succeeds(t, term)
			})
		})
	})
}

// slower tries with ever longer terms, for machines that are slow.
func slower(t *testing.T, try func(term time.Duration) bool) {
	t.Helper()
	for term := shortest; term <= longest; term *= 2 {
		if try(term) {
			return
		}
	}
	t.Error("it did not come to two holders, or to none, with any term: the test shows nothing")
}

// succeeds says whether there are two holders.
func (a *ambush) succeeds(t *testing.T, term time.Duration) bool {
	t.Helper()
	until := a.held.Until()
	_, at, _ := a.next.persist(t, "k", term, time.Until(until))
	return !at.IsZero() && at.Before(until)
}

func (a *ambush) wantNone(t *testing.T, o redis.Options) {
	t.Helper()
	got, at, told := a.next.persist(t, "k", o.MaxTTL, redis.Delay(o.MaxTTL)+30*time.Second)
	switch {
	case at.IsZero():
		t.Fatalf("it never counted again: %+v", told)
	case at.Before(a.held.Until()):
		t.Errorf("two holders: the second was let in %v before the end of the first", a.held.Until().Sub(at))
	case at.Sub(a.struck) < redis.Delay(o.MaxTTL):
		t.Errorf("let in %v after they forgot, want at least %v", at.Sub(a.struck), redis.Delay(o.MaxTTL))
	case got.Token <= a.held.Token:
		t.Errorf("token %d after %d", got.Token, a.held.Token)
	}
	if told.uncounted[quorum.Recovering] == 0 || told.left > redis.Delay(o.MaxTTL) {
		t.Errorf("told %+v, want that nodes are recovering, and for how long", told)
	}
}

// F4. Two of five forget within a term: nobody notices. Three do: nobody gets in
// for a while, and tokens go on above those that were forgotten.
func TestMinorityAndMajorityOfFiveForget(t *testing.T) {
	controlled(t, 5, func(t *testing.T, s []*redistest.Server, o redis.Options) *ambush {
		holder, next := join(t, o, s...), join(t, o, s...)
		declare(t, holder.Quorum)
		next.cycle(t)
		held := mustAcquire(t, holder, lease("k", o.MaxTTL))
		eventually(t, "all have the key", func() bool { return !slices.ContainsFunc(s, without("k")) })
		struck := time.Now()
		for _, x := range s[:2] {
			x.Restart()
		}
		l := lease("k", o.MaxTTL)
		_, err := next.Acquire(t.Context(), l)
		switch late := time.Now().After(held.Until()); {
		case late:
			return nil
		case !errors.Is(err, backend.ErrHeld):
			t.Errorf("two forgot: got %v, want that it is held", err)
		}
		next.cycle(t)
		s[2].Restart()
		return &ambush{held, next, struck}
	})
}

// F25. A node that restarts again while it recovers recovers from then. What it
// forgets the second time is a lock that it was given back after the first, and
// that was renewed there since: it is valid for longer than the first recovery
// would have lasted, and the node is one of just two that have it.
func TestRestartDuringRecoveryBeginsItAnew(t *testing.T) {
	controlled(t, 3, func(t *testing.T, s []*redistest.Server, o redis.Options) *ambush {
		holder, next := join(t, o, s...), join(t, o, nil, s[1], s[2])
		declare(t, holder.Quorum)
		next.cycle(t)
		held := mustAcquire(t, holder, lease("k", o.MaxTTL))
		renewed := func() bool {
			again := held
			again.Start = time.Now()
			err := holder.Renew(t.Context(), again)
			if err == nil {
				held = again
			} else if time.Now().Before(held.Until()) {
				t.Errorf("renew: %v", err)
			}
			return err == nil
		}
		s[2].Restart()
		next.persist(t, "another", time.Second, time.Millisecond) // it looks at the node
		recovered := time.Now().Add(redis.Delay(o.MaxTTL))
		for without("k")(s[2]) {
			if !renewed() {
				return nil
			}
		}
		holder.lines[1].to("")
		for time.Until(recovered) > o.MaxTTL/3 {
			if !renewed() {
				return nil
			}
			time.Sleep(o.MaxTTL / 10)
		}
		if !without("k")(s[1]) {
			t.Error("the second node, which was not told of renewals, still has the lock")
		}
		s[2].Restart()
		return &ambush{held, next, time.Now()}
	})
}

// without finds servers that do not have a key.
func without(key string) func(*redistest.Server) bool {
	return func(s *redistest.Server) bool {
		return s.Client().Exists(context.Background(), key).Val() == 0
	}
}
