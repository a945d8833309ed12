package sim_test

import (
	"strings"
	"testing"

	"github.com/distmutex/distmutex/internal/sim"
)

// replay runs one seed and shows all of it.
func replay(t *testing.T, seed int64) {
	p := planOf(seed)
	r := sim.Run(t, p, true)
	t.Logf("%v\n%s\ntrace %x", &p, strings.Join(r.Timeline, "\n"), r.Hash)
	for _, b := range r.Breaches {
		t.Error(b)
	}
	if len(r.Breaches) > 0 {
		explain(t, seed, r.Breaches[0].Law)
	}
}

// explain shows the smallest part of a seed's schedule that still breaks the law.
func explain(t *testing.T, seed int64, law sim.Law) {
	t.Helper()
	p := sim.Shrink(planOf(seed), func(p sim.Plan) bool {
		r := sim.Run(t, p, false)
		return r.Broke(law)
	})
	r := sim.Run(t, p, true)
	t.Logf("what is left of it when all is left out that %s can do without; run it by\n\n    go test ./internal/sim -run TestSchedules -seed=%d\n\n%v\n%s",
		law, seed, &p, strings.Join(r.Timeline, "\n"))
}
