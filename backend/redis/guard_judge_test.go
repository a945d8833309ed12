package redis_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend/redis"
)

// What a look at a server means, by what was known of it before.
func TestJudgementOfWhatAServerForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const term = 30 * time.Second
		now := time.Now()
		full := redis.Delay(term)
		ago := func(d time.Duration) time.Time { return now.Add(-d) }
		mark := func(runID, replID, birth string, since time.Time) string {
			return redis.Mark(runID, replID, birth, since, since, term)
		}
		var never time.Time
		good := redis.Sight{RunID: "run", ReplID: "repl", Uptime: time.Hour, Server: now, Local: now}
		with := func(change func(*redis.Sight)) redis.Sight {
			s := good
			change(&s)
			return s
		}
		marked := func(m string) redis.Sight { return with(func(s *redis.Sight) { s.Marker = m }) }
		for name, tc := range map[string]struct {
			sight redis.Sight
			birth string        // known before
			seen  time.Time     // when it last stood
			left  time.Duration // until it counts
			keeps bool          // its birth
		}{
			"no marker, up for long":                    {sight: good},
			"no marker, up for long but seen before":    {sight: good, birth: "b", seen: ago(time.Hour), left: full},
			"no marker, young":                          {sight: with(func(s *redis.Sight) { s.Uptime = full + time.Second }), left: full},
			"no marker, uptime negative":                {sight: with(func(s *redis.Sight) { s.Uptime = -time.Hour }), left: full},
			"no marker, its clock is an hour ahead":     {sight: with(func(s *redis.Sight) { s.Server = now.Add(time.Hour) }), left: full},
			"no marker, its clock is an hour behind":    {sight: with(func(s *redis.Sight) { s.Server = ago(time.Hour) }), left: full},
			"declared new":                              {sight: marked(mark("run", "repl", "b", never)), keeps: true},
			"declared new, known":                       {sight: marked(mark("run", "repl", "b", never)), birth: "b", seen: now, keeps: true},
			"forgot 10 s ago":                           {sight: marked(mark("run", "repl", "b", ago(10*time.Second))), left: full - 10*time.Second, keeps: true},
			"forgot an hour ago":                        {sight: marked(mark("run", "repl", "b", ago(time.Hour))), keeps: true},
			"forgot in the future":                      {sight: marked(mark("run", "repl", "b", now.Add(time.Hour))), left: full, keeps: true},
			"forgot an hour ago by the server's clock":  {sight: marked(redis.Mark("run", "repl", "b", ago(time.Hour), ago(time.Second), term)), left: full - time.Second, keeps: true},
			"forgot an hour ago by the client's clock":  {sight: marked(redis.Mark("run", "repl", "b", ago(time.Second), ago(time.Hour), term)), left: full - time.Second, keeps: true},
			"another process":                           {sight: marked(mark("old", "repl", "b", never)), left: full},
			"another process, known":                    {sight: marked(mark("old", "repl", "b", never)), birth: "b", seen: ago(time.Second), left: full},
			"promoted":                                  {sight: with(func(s *redis.Sight) { s.Marker, s.Promoted = mark("run", "other", "b", never), true }), left: full},
			"first replica came":                        {sight: marked(mark("run", "other", "b", never)), keeps: true},
			"promoted long ago, marked since":           {sight: with(func(s *redis.Sight) { s.Marker, s.Promoted = mark("run", "repl", "b", never), true }), keeps: true},
			"durable restart":                           {sight: with(func(s *redis.Sight) { s.Marker, s.Durable = mark("old", "other", "b", never), true }), birth: "b", seen: now, keeps: true},
			"durable restart of one that recovers":      {sight: with(func(s *redis.Sight) { s.Marker, s.Durable = mark("old", "other", "b", ago(time.Second)), true }), left: full - time.Second, keeps: true},
			"durable, but promoted":                     {sight: with(func(s *redis.Sight) { s.Marker, s.Durable, s.Promoted = mark("old", "other", "b", never), true, true }), left: full},
			"durable, but empty":                        {sight: with(func(s *redis.Sight) { s.Durable, s.Uptime = true, 0 }), left: full},
			"emptied, and another trusted its uptime":   {sight: marked(mark("run", "repl", "new", never)), birth: "b", seen: ago(time.Minute), left: full},
			"emptied, and another saw it 5 s ago":       {sight: marked(mark("run", "repl", "new", ago(5*time.Second))), birth: "b", seen: ago(time.Minute), left: full - 5*time.Second, keeps: true},
			"an older marker put back":                  {sight: marked(mark("run", "repl", "old", ago(time.Hour))), birth: "b", seen: ago(time.Minute), left: full},
			"nonsense":                                  {sight: marked("nonsense"), left: full},
			"nonsense of six words":                     {sight: marked("run repl b 0 0 x"), left: full},
			"a marker of a MaxTTL of 60 s":              {sight: marked(redis.Mark("run", "repl", "b", ago(term), ago(term), 2*term)), left: redis.Delay(2*term) - term, keeps: true},
			"a marker of a smaller MaxTTL":              {sight: marked(redis.Mark("run", "repl", "b", ago(10*time.Second), ago(10*time.Second), time.Second)), left: full - 10*time.Second, keeps: true},
			"another's marker of a larger MaxTTL stays": {sight: marked(redis.Mark("old", "repl", "b", never, never, 2*term)), left: redis.Delay(2 * term)},
		} {
			m, left := redis.Judge(tc.sight, tc.birth, tc.seen, term)
			if left != tc.left {
				t.Errorf("%s: does not count for %v, want %v", name, left, tc.left)
			}
			if was := redis.Birth(tc.sight.Marker); (redis.Birth(m) == was && was != "") != tc.keeps {
				t.Errorf("%s: marker %q, then %q; birth kept should be %v", name, tc.sight.Marker, m, tc.keeps)
			}
			// Whoever sees the marker next, having seen it, thinks no worse of it.
			tc.sight.Marker = m
			again, after := redis.Judge(tc.sight, redis.Birth(m), tc.sight.Server, term)
			if again != m || after > left {
				t.Errorf("%s: the marker %q became %q at once, %v left", name, m, again, after)
			}
		}
	})
}

// Processes that think differently of a server agree soon: no marker is written
// for ever.
func TestJudgementsSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const term = time.Second
		seen := time.Now().Add(time.Hour) // all saw it before its clock was set back
		known := []string{"b", "b", "b", "c", ""}
		at := []time.Time{seen, seen, seen, seen, {}}
		m := redis.Mark("run", "repl", "x", time.Time{}, time.Time{}, term)
		writes := 0
		for range 10 {
			for i := range known {
				time.Sleep(10 * time.Millisecond)
				now := time.Now()
				next, _ := redis.Judge(redis.Sight{RunID: "run", ReplID: "repl", Server: now, Local: now, Marker: m}, known[i], at[i], term)
				if next != m {
					writes++
				}
				m, known[i], at[i] = next, redis.Birth(next), now
			}
		}
		if writes > len(known) {
			t.Errorf("%d markers were written by %d processes", writes, len(known))
		}
	})
}

// A clock that runs ahead of ours is told from one that is wrong, slow or read
// late.
func TestClockThatRanAhead(t *testing.T) {
	const term = 30 * time.Second // allows 302 ms
	type look = struct{ at, ahead, trip time.Duration }
	ms := time.Millisecond
	for name, tc := range map[string]struct {
		looks []look
		ran   bool
	}{
		"steady":                        {[]look{{0, 0, ms}, {time.Second, 0, ms}, {time.Minute, 0, ms}}, false},
		"an hour ahead from the start":  {[]look{{0, time.Hour, ms}, {time.Second, time.Hour, ms}}, false},
		"a step of a second":            {[]look{{0, 0, ms}, {time.Second, time.Second, ms}}, true},
		"a step within the drift":       {[]look{{0, 0, ms}, {time.Second, 300 * ms, ms}}, false},
		"a step hidden by a slow trip":  {[]look{{0, 0, time.Second}, {time.Second, 700 * ms, ms}}, false},
		"a step after a slow trip":      {[]look{{0, 0, time.Second}, {time.Second, 0, ms}, {2 * time.Second, 900 * ms, ms}}, true},
		"read late":                     {[]look{{0, 0, ms}, {time.Second, 0, 5 * time.Second}, {2 * time.Second, 0, ms}}, false},
		"a step back":                   {[]look{{0, 0, ms}, {time.Second, -time.Hour, ms}}, false},
		"back and forth":                {[]look{{0, 0, ms}, {time.Second, -time.Hour, ms}, {2 * time.Second, 0, ms}}, true},
		"slewed by 8 %":                 {[]look{{0, 0, ms}, {4 * time.Second, 320 * ms, ms}}, true},
		"slewed by 8 %, in small looks": {slewed(80 * ms), true},
		"slewed by 0.5 %":               {slewed(5 * ms), false},
		"a day idle, a little off":      {[]look{{0, 0, ms}, {24 * time.Hour, 10 * time.Second, ms}}, false},
		"an hour idle, a minute off":    {[]look{{0, 0, ms}, {time.Hour, time.Minute, ms}}, true},
	} {
		var w redis.Watch
		begin, ran := time.Now(), false
		for _, l := range tc.looks {
			ran = w.Observe(l.ahead-l.trip/2, l.ahead+l.trip/2, begin.Add(l.at), term) || ran
		}
		if ran != tc.ran {
			t.Errorf("%s: ran ahead: %v, want %v", name, ran, tc.ran)
		}
	}
}

// slewed is a clock that gains so much each second, looked at for ten minutes.
func slewed(each time.Duration) (looks []struct{ at, ahead, trip time.Duration }) {
	for i := range 600 {
		looks = append(looks, struct{ at, ahead, trip time.Duration }{time.Duration(i) * time.Second, time.Duration(i) * each, time.Millisecond})
	}
	return looks
}

// When the clocks of a majority ran ahead alike, it was ours that stood still: a
// machine that was suspended does not lose its quorum for it.
func TestOurClockStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const term = 2 * time.Second
		f := redis.NewFleet(5, term)
		see := func(ahead ...time.Duration) {
			for i, d := range ahead {
				f.See(i, d)
			}
		}
		const m = time.Minute
		see(0, 0, 0, 0, 0)
		time.Sleep(time.Second)
		see(0, m, 0, 2*m, 0)
		if got := fmt.Sprint(f.Ahead()); got != "[1 3]" {
			t.Errorf("two ran ahead: %s are set aside, want 1 and 3", got)
		}
		time.Sleep(redis.Delay(term))
		if got := f.Ahead(); got != nil {
			t.Errorf("after a while %v are set aside", got)
		}
		see(m, 2*m, m) // by a minute, all that we have heard of
		if got := f.Ahead(); got != nil {
			t.Errorf("we stood still: %v are set aside", got)
		}
		see(m, 2*m, m, 3*m, m)
		if got := f.Ahead(); got != nil {
			t.Errorf("we stood still: %v are set aside after all have answered", got)
		}
		time.Sleep(time.Second)
		see(m, 2*m, m+10*time.Second, 3*m, m)
		if got := fmt.Sprint(f.Ahead()); got != "[2]" {
			t.Errorf("one ran ahead: %s are set aside", got)
		}
	})
}

func TestServersThatKeepScriptsAreRefused(t *testing.T) {
	t.Parallel()
	for version, fits := range map[string]bool{"6.2.14": false, "5.0.7": false, "7.0.15": true, "8.6.3": true, "10.0.0": true, "255.255.255": true, "": true} {
		if err := redis.Old("redis_version:" + version + "\r\n"); (err == nil) != fits {
			t.Errorf("%q: got %v", version, err)
		}
	}
}
