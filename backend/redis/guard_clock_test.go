package redis_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// clockOf starts two servers and a third whose clock set moves, or skips.
func clockOf(t *testing.T, f redistest.Flavour) (servers []*redistest.Server, set func(d time.Duration)) {
	t.Helper()
	third := redistest.StartClocked(t, f, 1)[0]
	if err := third.FixedClock(); err != nil {
		t.Skip("not checked: ", err)
	}
	return append(redistest.Start(t, f, 2), third), third.SetClock
}

// eachClock runs test on a third server whose clock it sets.
func eachClock(t *testing.T, test func(t *testing.T, s []*redistest.Server, set func(time.Duration))) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		s, set := clockOf(t, f)
		test(t, s, set)
	})
}

// F21. The clock of one of three steps ahead, and a lock there ends early. A
// process that saw the clock before, and one that did not, are both kept from
// getting it with that node; without the guard they get it.
func TestNodeWhoseClockRanAheadDoesNotCount(t *testing.T) {
	eachClock(t, func(t *testing.T, s []*redistest.Server, set func(time.Duration)) {
		for name, fresh := range map[string]bool{"seen before": false, "never seen before": true} {
			t.Run(name, func(t *testing.T) {
				slower(t, func(term time.Duration) bool {
					return stepAhead(t, s, set, fresh, redis.Options{MaxTTL: term, Unguarded: true}).succeeds(t, term)
				})
				slower(t, func(term time.Duration) bool {
					return stepAhead(t, s, set, fresh, redis.Options{MaxTTL: term}).toldOfTheClock(t, term)
				})
			})
		}
	})
}

// stepAhead makes the third server drop a lock, and who comes next reach it.
func stepAhead(t *testing.T, s []*redistest.Server, set func(time.Duration), fresh bool, o redis.Options) *ambush {
	t.Helper()
	set(0)
	for _, x := range s {
		x.Wipe()
	}
	declare(t, join(t, o, s...).Quorum)
	holder, next := join(t, o, s[0], nil, s[2]), join(t, o, s...)
	if !fresh {
		next.cycle(t)
	}
	held := mustAcquire(t, holder, lease("k", o.MaxTTL))
	set(time.Hour)
	next.lines[0].to("")
	return &ambush{held: held, next: next}
}

// toldOfTheClock says whether that is why there is one holder.
func (a *ambush) toldOfTheClock(t *testing.T, term time.Duration) bool {
	t.Helper()
	until := a.held.Until()
	_, at, told := a.next.persist(t, "k", term, time.Until(until)-100*time.Millisecond)
	if !at.IsZero() && at.Before(until) {
		t.Error("two holders")
	}
	if told.left > redis.Delay(term) {
		t.Errorf("told %+v, want to wait for %v at most", told, redis.Delay(term))
	}
	return told.uncounted[quorum.ClockAhead] > 0
}

// F22. A clock that is set back ends nothing early, so the node counts. When it
// is set right again it has run ahead, and what began meanwhile has ended early:
// the node is set aside, which is logged and ends after a while. Without the
// guard another gets the lock.
func TestClockSetBackAndForth(t *testing.T) {
	eachClock(t, func(t *testing.T, s []*redistest.Server, set func(time.Duration)) {
		slower(t, func(term time.Duration) bool {
			return backAndForth(t, s, set, redis.Options{MaxTTL: term, Unguarded: true}).succeeds(t, term)
		})
		slower(t, func(term time.Duration) bool {
			var log logs
			a := backAndForth(t, s, set, redis.Options{MaxTTL: term, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if !a.toldOfTheClock(t, term) {
				return false
			}
			got, at, _ := a.next.persist(t, "k", term, redis.Delay(term)+30*time.Second)
			if at.IsZero() {
				t.Fatal("it never counted again")
			}
			mustRelease(t, a.next, got)
			for _, word := range []string{"set aside", "clock is or was ahead", "in use again"} {
				if !strings.Contains(log.String(), word) {
					t.Errorf("the log does not say %q: %s", word, log.String())
				}
			}
			return true
		})
	})
}

// backAndForth sets the third server's clock back, has a lock taken there, and
// sets it right.
func backAndForth(t *testing.T, s []*redistest.Server, set func(time.Duration), o redis.Options) *ambush {
	t.Helper()
	set(0)
	for _, x := range s {
		x.Wipe()
	}
	all := join(t, o, s...)
	declare(t, all.Quorum)
	all.cycle(t)
	set(-time.Hour)
	holder, next := join(t, o, s[0], nil, s[2]), join(t, o, nil, s[1], s[2])
	next.cycle(t)
	held := mustAcquire(t, holder, lease("k", o.MaxTTL))
	if _, err := next.Acquire(t.Context(), lease("k", o.MaxTTL)); !errors.Is(err, backend.ErrHeld) && time.Now().Before(held.Until()) {
		t.Errorf("set back: got %v, want a node that counts, and holds the lock", err)
	}
	set(0)
	return &ambush{held: held, next: next}
}
