package quorum_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
)

const ms = time.Millisecond

// The schedules T1 to T8 broke simpler rules for tokens and releases in a model
// check. Node 1 there is node 0 here.

func mustAcquire(t *testing.T, q backend.Backend, owner string) backend.Lease {
	t.Helper()
	got, err := q.Acquire(t.Context(), lease(owner))
	if err != nil {
		t.Fatalf("%s: %v", owner, err)
	}
	return got
}

// T1: nodes that did not stand at the token issue it again.
func TestTokenIsRaisedOnAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 0, 0)
		a, b := c.client(t, nil, only(0, 1)), c.client(t, nil, only(1, 2))
		first := mustAcquire(t, a, "a")
		if err := a.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		second := mustAcquire(t, b, "b")
		if first.Token != 2 || second.Token != 3 {
			t.Errorf("tokens %d, then %d, want 2, then 3", first.Token, second.Token)
		}
	})
}

// T2: a raise on a node that did not grant makes room for a second holder of
// the token.
func TestRaiseGoesOnlyToNodesThatGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 1, 0)
		a := c.client(t, nil, func(node int, op string, l backend.Lease) fate {
			return fate{there: 5 * ms, lost: node == 1 && l.Token == 0}
		})
		b := c.client(t, nil, func(node int, op string, l backend.Lease) fate {
			if node == 2 && op == "acquire" && l.Token == 0 {
				return fate{there: 40 * ms}
			}
			return fate{there: ms, lost: node == 0}
		})
		granted := make(chan backend.Lease)
		go func() {
			got, err := b.Acquire(t.Context(), lease("b"))
			if err != nil {
				t.Error(err)
			}
			granted <- got
		}()
		first := mustAcquire(t, a, "a")
		if err := a.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		second := <-granted
		if first.Token != 2 || second.Token <= first.Token {
			t.Errorf("tokens %d and %d, want 2 and a larger one", first.Token, second.Token)
		}
	})
}

// T3: a late grant above the token does not count as standing at it.
func TestLateGrantAboveTheTokenDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 1, 0)
		a := c.client(t, nil, func(node int, op string, l backend.Lease) fate {
			switch {
			case node == 1:
				return fate{there: 50 * ms} // after b's key there has died
			case l.Token != 0 && op == "acquire" && node == 2:
				return fate{there: 100 * ms} // the raise of node 2
			}
			return fate{}
		})
		b := c.client(t, nil, only(1))
		go func() {
			time.Sleep(ms)
			b.Acquire(t.Context(), lease("b"))
		}()
		go func() {
			time.Sleep(10 * ms)
			c[1].mu.Lock()
			c[1].owner = ""
			c[1].mu.Unlock()
		}()
		begun := time.Now()
		got := mustAcquire(t, a, "a")
		if took := time.Since(begun); took < 100*ms {
			t.Errorf("answered after %v, before a majority stood at its token %d", took, got.Token)
		}
		at := 0
		for _, s := range c {
			if s.counter >= got.Token {
				at++
			}
		}
		if at < 2 {
			t.Errorf("%d nodes stand at token %d, want a majority", at, got.Token)
		}
	})
}

// T4: a node that forgot its counter is covered by the floor of time.
func TestTokensIncreaseOverANodeThatForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 1, 1)
		for _, s := range c {
			s.clocked = true
		}
		a, b := c.client(t, nil, only(0, 1)), c.client(t, nil, only(0, 2))
		first := mustAcquire(t, a, "a")
		if err := a.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		c[0].wipe()
		time.Sleep(ms)
		if second := mustAcquire(t, b, "b"); second.Token <= first.Token {
			t.Errorf("token %d after %d", second.Token, first.Token)
		}
	})
}

// T5: where a clock jump lets two in, the second has the larger token.
func TestTokensIncreaseOverAClockJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(5, 5, 5, 0, 0)
		a, b := c.client(t, nil, only(0, 1, 2)), c.client(t, nil, only(2, 3, 4))
		first := mustAcquire(t, a, "a")
		c[2].ahead = time.Hour
		if second := mustAcquire(t, b, "b"); second.Token <= first.Token {
			t.Errorf("token %d after %d", second.Token, first.Token)
		}
	})
}

// T6: the slow releases of an attempt that failed do not touch the next one.
func TestSlowReleaseDoesNotFreeTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0)
		c[1].owner, c[1].ends = "other", time.Now().Add(20*ms)
		c[2].owner, c[2].ends = "other", time.Now().Add(20*ms)
		a := c.client(t, nil, func(_ int, op string, l backend.Lease) fate {
			if op == "release" && l.Owner == "a1" {
				return fate{there: 200 * ms}
			}
			return fate{there: ms}
		})
		if _, err := a.Acquire(t.Context(), lease("a1")); !errors.Is(err, backend.ErrHeld) {
			t.Fatalf("got %v, want ErrHeld", err)
		}
		time.Sleep(50 * ms)
		mustAcquire(t, a, "a2")
		time.Sleep(500 * ms)
		if _, err := c.client(t, nil, nil).Acquire(t.Context(), lease("b")); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("got %v for a second client, want ErrHeld", err)
		}
	})
}

// T7: agreement among those that granted is not a majority of all.
func TestTokenNeedsAMajorityOfTheConfiguredNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(9, 9, 6, 0, 0)
		a, b := c.client(t, nil, only(0, 1, 2)), c.client(t, nil, only(2, 3, 4))
		first := mustAcquire(t, a, "a")
		if err := a.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		second := mustAcquire(t, b, "b")
		if first.Token != 10 || second.Token != 11 {
			t.Errorf("tokens %d, then %d, want 10, then 11", first.Token, second.Token)
		}
	})
}

// T8, Case 6: a release does not overtake its acquire.
func TestReleaseComesBehindItsAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0)
		a := c.client(t, nil, func(node int, op string, _ backend.Lease) fate {
			if node == 2 && op == "acquire" {
				return fate{there: 300 * ms}
			}
			return fate{}
		})
		got := mustAcquire(t, a, "a")
		if err := a.Release(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		time.Sleep(600 * ms)
		if n := c.keys(); n != 0 {
			t.Errorf("%d nodes hold a key after the release, want none", n)
		}
	})
}

// What the caller may rely on counts from before the first message: a raise, however
// late, moves nothing.
func TestTermCountsFromTheFirstMessageThoughItIsRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(5, 0, 7) // no two of them grant the same
		q := c.client(t, nil, func(int, string, backend.Lease) fate { return fate{there: 300 * ms, back: 300 * ms} })
		want, begun := lease("a"), time.Now()
		got, err := q.Acquire(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 1200*ms {
			t.Errorf("token %d after %v, want a raised one after 1.2s", got.Token, took)
		}
		if end := got.Start.Add(got.TTL); end.After(want.Start.Add(want.TTL)) {
			t.Errorf("a term of %v from %v, want no longer than %v from %v", got.TTL, got.Start, want.TTL, want.Start)
		}
	})
}

// A repeated call has the answer of the first, though a late node has granted
// more than the majority stands at.
func TestRepeatHasTheFirstToken(t *testing.T) {
	for late := range 5 {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(0, 0, 0, 0, 0)
			c[late].counter = 1000
			q := c.client(t, nil, func(node int, _ string, _ backend.Lease) fate {
				if node == late && c[late].counter == 1000 {
					return fate{there: 20 * ms}
				}
				return fate{there: time.Duration(node) * ms}
			})
			first := mustAcquire(t, q, "a")
			time.Sleep(100 * ms)
			if again := mustAcquire(t, q, "a"); again.Token != first.Token {
				t.Errorf("node %d late: token %d, then %d", late, first.Token, again.Token)
			}
		})
	}
}
