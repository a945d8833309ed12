package redis_test

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// clockOf starts two servers and a third whose clock set moves, or skips.
// The environment is the process's, so no test that uses it is parallel.
func clockOf(t *testing.T, f redistest.Flavour) (servers []*redistest.Server, set func(d time.Duration)) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("not checked: gcc is not here, to build the shim that sets a server's clock")
	}
	servers = redistest.Start(t, f, 2)
	shim, offset := filepath.Join(t.TempDir(), "clock.so"), filepath.Join(t.TempDir(), "offset")
	set = func(d time.Duration) {
		// In place, and as long each time, so that no reading is half of each.
		text := []byte(strings.Repeat(" ", 16))
		copy(text, strconv.Itoa(int(d/time.Second)))
		file, err := os.OpenFile(offset, os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, err = file.WriteAt(text, 0)
			file.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	if out, err := exec.Command(gcc, "-shared", "-fPIC", "-O2", "-o", shim, filepath.Join("testdata", "clock.c"), "-ldl").CombinedOutput(); err != nil {
		t.Skipf("not checked: gcc does not build the shim that sets a server's clock: %v\n%s", err, out)
	}
	t.Setenv("LD_PRELOAD", shim)
	t.Setenv("CLOCK_OFFSET", offset)
	third := redistest.Start(t, f, 1)[0]
	os.Unsetenv("LD_PRELOAD")
	set(time.Hour)
	ahead := time.Until(third.Client().Time(t.Context()).Val())
	set(0)
	if ahead < time.Minute {
		t.Skipf("not checked: the shim does not move the clock of this server's build (%v)", ahead)
	}
	return append(servers, third), set
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
				letIn := false // on a slow machine only a longer term shows it
				for term := shortest; term <= longest && !letIn; term *= 2 {
					until, next := stepAhead(t, s, set, fresh, redis.Options{MaxTTL: term, Unguarded: true})
					_, at, _ := next.persist(t, "k", term, time.Until(until))
					letIn = !at.IsZero() && at.Before(until)
				}
				if !letIn {
					t.Error("control: no two holders even without the guard: the test shows nothing")
				}
				told := refusals{}
				for term := shortest; term <= longest && told.uncounted[quorum.ClockAhead] == 0; term *= 2 {
					var at time.Time
					until, next := stepAhead(t, s, set, fresh, redis.Options{MaxTTL: term})
					if _, at, told = next.persist(t, "k", term, time.Until(until)-100*time.Millisecond); !at.IsZero() && at.Before(until) {
						t.Error("two holders")
					}
				}
				if told.uncounted[quorum.ClockAhead] == 0 {
					t.Errorf("got %+v, want to be told of the clock", told)
				}
			})
		}
	})
}

// stepAhead makes the third server drop a lock, and who comes next reach it.
func stepAhead(t *testing.T, s []*redistest.Server, set func(time.Duration), fresh bool, o redis.Options) (until time.Time, next *party) {
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
	return held.Until(), next
}

// F22. A clock that is set back ends nothing early, so the node counts. When it
// is set right again it has run ahead, and what began meanwhile has ended early:
// the node is set aside, which is logged and ends after a while.
func TestClockSetBackAndForth(t *testing.T) {
	eachClock(t, func(t *testing.T, s []*redistest.Server, set func(time.Duration)) {
		var log logs
		o := redis.Options{MaxTTL: shortest, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		all := join(t, o, s...)
		declare(t, all.Quorum)
		all.cycle(t)
		set(-time.Hour)
		holder, next := join(t, o, s[0], nil, s[2]), join(t, o, nil, s[1], s[2])
		held := mustAcquire(t, holder, lease("k", o.MaxTTL))
		if _, at, told := next.persist(t, "k", o.MaxTTL, time.Until(held.Until())-100*time.Millisecond); !at.IsZero() || told.held == 0 {
			t.Errorf("set back: let in at %v, told %+v; want a node that counts, and holds the lock", at, told)
		}
		mustRelease(t, holder, held)
		next.cycle(t)
		set(0)
		want := lease("k", o.MaxTTL)
		_, err := next.Acquire(t.Context(), want)
		var e *quorum.UncountedError
		if !errors.As(err, &e) || e.ErrorType() != "clock" || e.Left <= 0 || e.Left > redis.Delay(o.MaxTTL) {
			t.Errorf("set right: got %v, want a node that does not count for its clock, and for how long", err)
		}
		next.Release(t.Context(), want)
		got, at, _ := next.persist(t, "k", o.MaxTTL, 30*time.Second)
		if at.IsZero() {
			t.Fatal("it never counted again")
		}
		mustRelease(t, next, got)
		for _, word := range []string{"set aside", "clock is or was ahead", "in use again"} {
			if !strings.Contains(log.String(), word) {
				t.Errorf("the log does not say %q: %s", word, log.String())
			}
		}
	})
}
