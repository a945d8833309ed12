package quorum_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

// What can befall an attempt on one node.
const (
	grants   = iota
	refuses                       // another holds the key
	deaf                          // the request never arrives
	mute                          // it is carried out, and the reply never arrives
	fates                         // how many there are
	deadline = time.Second + 2*ms // a node's time-out, and the way
)

// Cases 2, 4, 5 and 6, whole: each combination of what can befall an attempt on
// three and on five nodes. The answer is the one that the nodes' answers allow,
// as soon as they do, and nothing stays anywhere once it was given back: by the
// quorum itself after ErrHeld, else by Release.
func TestAttemptLeavesNothingWhateverBefallsItsNodes(t *testing.T) {
	for _, n := range []int{3, 5} {
		combinations := 1
		for range n {
			combinations *= fates
		}
		for i := range combinations {
			var befall []int
			for range n {
				befall = append(befall, i%fates)
				i /= fates
			}
			synctest.Test(t, func(t *testing.T) { attempt(t, befall) })
		}
	}
}

func attempt(t *testing.T, befall []int) {
	c := newCluster(make([]backend.Token, len(befall))...)
	var count [fates]int
	for i, f := range befall {
		count[f]++
		if f == refuses {
			c[i].owner, c[i].ends = "other", time.Now().Add(time.Hour)
		}
	}
	q := c.client(t, nil, func(node int, op string, _ backend.Lease) fate {
		if op != "acquire" {
			return fate{there: ms}
		}
		return fate{there: ms, lost: befall[node] == deaf, mute: befall[node] == mute}
	})
	want, begun, need := lease("a"), time.Now(), len(befall)/2+1
	got, err := q.Acquire(t.Context(), want)
	took := time.Since(begun)
	switch answers := count[grants] + count[refuses]; {
	case (err == nil) != (count[grants] >= need), errors.Is(err, backend.ErrHeld) != (count[grants] < need && answers >= need),
		errors.Is(err, context.DeadlineExceeded):
		t.Errorf("fates %v: got %v", befall, err)
	case (err == nil || count[refuses] >= need) && took != ms, took > deadline:
		t.Errorf("fates %v: %v after %v", befall, err, took)
	}
	if err == nil {
		want = got
	}
	if !errors.Is(err, backend.ErrHeld) {
		_ = q.Release(t.Context(), want)
	}
	time.Sleep(time.Until(begun.Add(3 * time.Second))) // the term is 8 s
	if owners := strings.Join(c.owners(), ","); strings.Contains(owners, "a") {
		t.Errorf("fates %v: after %v, %q hold the key", befall, err, owners)
	}
}

// Case 4: as many refusals as rule a majority out are enough, for every number of
// nodes. Where they are not a majority themselves, it takes the others' time-out
// to know that the key is not just unreachable.
func TestRefusalsThatRuleOutAMajorityAreEnough(t *testing.T) {
	for n := 1; n <= 9; n++ {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(make([]backend.Token, n)...)
			var up []int
			for i := range n - (n/2 + 1) + 1 {
				up = append(up, i)
				c[i].owner, c[i].ends = "other", time.Now().Add(time.Hour)
			}
			begun := time.Now()
			_, err := c.client(t, nil, only(up...)).Acquire(t.Context(), lease("a"))
			took, odd := time.Since(begun), n%2 == 1
			if err == nil || errors.Is(err, backend.ErrHeld) != odd || odd && took != ms || took > deadline {
				t.Errorf("%d refusals of %d: %v after %v", len(up), n, err, took)
			}
		})
	}
}

// Case 10: what a silent node costs is bounded by its own time-out, which is not
// the caller's deadline, and the error names it. The verbs wait for no more nodes
// than they need.
func TestSilentNodesBoundTheVerbsAndAreNamed(t *testing.T) {
	for silent := 1; silent <= 2; silent++ {
		synctest.Test(t, func(t *testing.T) {
			c, hush := newCluster(0, 0, 0), new(atomic.Int32)
			q := c.client(t, &quorum.Options{NodeTimeout: 300 * ms}, func(node int, _ string, _ backend.Lease) fate {
				return fate{there: ms, lost: node >= 3-int(hush.Load())}
			})
			held := mustAcquire(t, q, "a")
			hush.Store(int32(silent))
			for _, verb := range []string{"renew", "acquire", "release"} {
				begun := time.Now()
				err := verbs(t, q, held)[verb]()
				took := time.Since(begun)
				if silent == 1 {
					if err != nil || took != ms {
						t.Errorf("%s, one silent node: %v after %v", verb, err, took)
					}
					continue
				}
				var failed *backend.QuorumError
				if !errors.As(err, &failed) || failed.Verdict != nil || took > time.Second || errors.Is(err, context.DeadlineExceeded) ||
					!strings.Contains(err.Error(), "node 1") || !strings.Contains(err.Error(), "node 2") || strings.Contains(err.Error(), "node 0") {
					t.Errorf("%s, two silent nodes: %v after %v", verb, err, took)
				}
			}
			hush.Store(0)
			time.Sleep(time.Second)
		})
	}
}

func verbs(t *testing.T, q *quorum.Backend, l backend.Lease) map[string]func() error {
	return map[string]func() error{
		"renew":   func() error { return q.Renew(t.Context(), l) },
		"acquire": func() error { _, err := q.Acquire(t.Context(), l); return err },
		"release": func() error { return q.Release(t.Context(), l) },
	}
}
