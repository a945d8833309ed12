package retry_test

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/distmutex/distmutex/retry"
)

const ms = time.Millisecond

// draw makes n waits of a fresh back-off.
func draw(p retry.Policy, n int) []time.Duration {
	b := p()
	waits := make([]time.Duration, n)
	for i := range waits {
		waits[i] = b.NextBackOff()
	}
	return waits
}

func TestPoliciesWithoutJitterAreExact(t *testing.T) {
	for name, c := range map[string]struct {
		policy retry.Policy
		want   []time.Duration
	}{
		"constant":       {retry.Constant(5 * ms), []time.Duration{5 * ms, 5 * ms, 5 * ms}},
		"exponential":    {retry.Exponential(10*ms, 100*ms), []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 100 * ms, 100 * ms}},
		"at its maximum": {retry.Exponential(10*ms, 10*ms), []time.Duration{10 * ms, 10 * ms}},
		"never zero":     {retry.FullJitter(1, 1), []time.Duration{1, 1, 1, 1, 1, 1}},
		"limited":        {retry.Limit(retry.Constant(5*ms), 2), []time.Duration{5 * ms, 5 * ms, backoff.Stop, backoff.Stop}},
		"limited to 0":   {retry.Limit(retry.Constant(5*ms), 0), []time.Duration{backoff.Stop}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := draw(c.policy, len(c.want)); !slices.Equal(got, c.want) {
				t.Errorf("waits are %v; want %v", got, c.want)
			}
		})
	}
}

// The ranges are used to both ends, and evenly: a mean that is off by a tenth
// is ten standard deviations away.
func TestFullJitterIsEvenBelowTheExponential(t *testing.T) {
	const draws = 4000
	p := retry.FullJitter(10*ms, 100*ms)
	for i, longest := range []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 100 * ms, 100 * ms} {
		lo, hi, sum := time.Duration(math.MaxInt64), time.Duration(0), time.Duration(0)
		for range draws {
			w := draw(p, i+1)[i]
			lo, hi, sum = min(lo, w), max(hi, w), sum+w
		}
		if lo <= 0 || hi > longest {
			t.Errorf("wait %d: from %v to %v; want over 0 and at most %v", i, lo, hi, longest)
		}
		if lo > longest/20 || hi < longest-longest/20 {
			t.Errorf("wait %d: from %v to %v; want the whole range to %v", i, lo, hi, longest)
		}
		if mean := sum / draws; mean < longest*45/100 || mean > longest*55/100 {
			t.Errorf("wait %d: mean %v; want about %v", i, mean, longest/2)
		}
	}
}

func TestDecorrelatedStaysBetweenBaseAndThreeTimesTheLast(t *testing.T) {
	const base, longest = 10 * ms, 200 * ms
	p := retry.Decorrelated(base, longest)
	atLongest, spread := 0, map[time.Duration]bool{}
	for range 200 {
		last := base
		for i, w := range draw(p, 50) {
			if w < base || w > min(longest, 3*last) {
				t.Fatalf("wait %d: %v after %v; want %v to %v", i, w, last, base, min(longest, 3*last))
			}
			if w == longest {
				atLongest++
			}
			if i == 0 {
				spread[w.Truncate(ms)] = true
			}
			last = w
		}
	}
	if atLongest == 0 || atLongest == 200*50 {
		t.Errorf("%d of %d waits are the longest", atLongest, 200*50)
	}
	if len(spread) < 15 { // of 20, in 200 draws
		t.Errorf("the first waits fall on %d different milliseconds; want nearly 20", len(spread))
	}
}

// v4's own exponential stops after 15 minutes and exceeds its cap by half.
func TestPoliciesNeverStopNorExceedTheirMaximum(t *testing.T) {
	for name, p := range map[string]retry.Policy{
		"constant":     retry.Constant(100 * ms),
		"exponential":  retry.Exponential(ms, 100*ms),
		"full jitter":  retry.FullJitter(ms, 100*ms),
		"decorrelated": retry.Decorrelated(ms, 100*ms),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := p()
				for start := time.Now(); time.Since(start) < time.Hour; {
					w := b.NextBackOff()
					if w <= 0 || w > 100*ms {
						t.Fatalf("after %v: a wait of %v; want over 0 and at most 100ms", time.Since(start), w)
					}
					time.Sleep(w)
				}
			})
		})
	}
}

func TestPoliciesTakeTheLongestDuration(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for name, p := range map[string]retry.Policy{
		"exponential":  retry.Exponential(longest/2, longest),
		"full jitter":  retry.FullJitter(longest, longest),
		"decorrelated": retry.Decorrelated(longest-1, longest),
	} {
		for _, w := range draw(p, 100) {
			if w <= 0 {
				t.Errorf("%s: a wait of %v", name, w)
			}
		}
	}
}

func TestResetStartsAnew(t *testing.T) {
	for name, p := range map[string]retry.Policy{
		"exponential":  retry.Exponential(ms, time.Hour),
		"full jitter":  retry.FullJitter(ms, time.Hour),
		"decorrelated": retry.Decorrelated(ms, time.Hour),
	} {
		b := p()
		for range 30 {
			b.NextBackOff()
		}
		b.Reset()
		if w := b.NextBackOff(); w <= 0 || w > 3*ms {
			t.Errorf("%s: the first wait after Reset is %v; want at most 3ms", name, w)
		}
	}
}

// Case 16: a policy value that many share neither races nor runs dry.
func TestPolicyIsSharedByMany(t *testing.T) {
	p := retry.Limit(retry.FullJitter(ms, 10*ms), 3)
	for range 2 {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				waits := draw(p, 4)
				if i := slices.Index(waits, backoff.Stop); i != 3 {
					t.Errorf("waits are %v; want three and a stop", waits)
				}
			})
		}
		wg.Wait()
	}
}

func TestMisusePanics(t *testing.T) {
	for name, f := range map[string]func(){
		"constant of zero":           func() { retry.Constant(0) },
		"constant of less":           func() { retry.Constant(-1) },
		"exponential from zero":      func() { retry.Exponential(0, ms) },
		"exponential upside down":    func() { retry.Exponential(2*ms, ms) },
		"full jitter from zero":      func() { retry.FullJitter(0, ms) },
		"full jitter upside down":    func() { retry.FullJitter(2*ms, ms) },
		"decorrelated from less":     func() { retry.Decorrelated(-ms, ms) },
		"decorrelated upside down":   func() { retry.Decorrelated(2*ms, ms) },
		"limit of a nil policy":      func() { retry.Limit(nil, 1) },
		"limit of less than none":    func() { retry.Limit(retry.Constant(ms), -1) },
		"middleware of a nil policy": func() { retry.Middleware(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
