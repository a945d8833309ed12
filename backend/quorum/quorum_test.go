package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/quorum"
)

func TestBadInputIsRefusedAtTheDoor(t *testing.T) {
	m := memory.New(nil)
	for name, tc := range map[string]struct {
		nodes []backend.Backend
		o     *quorum.Options
		field string
	}{
		"no node":          {nil, nil, "nodes"},
		"nil node":         {[]backend.Backend{m, nil}, nil, "nodes"},
		"one node twice":   {[]backend.Backend{m, memory.New(nil), m}, nil, "nodes"},
		"negative timeout": {[]backend.Backend{m}, &quorum.Options{NodeTimeout: -1}, "NodeTimeout"},
		"negative bound":   {[]backend.Backend{m}, &quorum.Options{MaxInFlight: -1}, "MaxInFlight"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := quorum.New(tc.nodes, tc.o)
			var invalid *backend.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != tc.field {
				t.Errorf("got %v, want an *InvalidError for %s", err, tc.field)
			}
		})
	}
}

// Cases 8, 9: a majority is of the configured nodes, for every number of them.
func TestMajorityIsOfAllConfiguredNodes(t *testing.T) {
	for n := 1; n <= 9; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				need := n/2 + 1
				var up []int
				for i := range need {
					up = append(up, i)
				}
				c := newCluster(make([]backend.Token, n)...)
				_, err := c.client(t, nil, only(up[1:]...)).Acquire(t.Context(), lease("a"))
				var q *backend.QuorumError
				if !errors.As(err, &q) || q.Verdict != nil || errors.Is(err, backend.ErrHeld) {
					t.Errorf("with %d nodes: got %v, want an unknown outcome", need-1, err)
				}
				time.Sleep(10 * time.Second)
				mustAcquire(t, c.client(t, nil, only(up...)), "b")
			})
		})
	}
}

// Cases 4, 12: what a majority answered is definite, and only that.
func TestHeldIsDefinite(t *testing.T) {
	dead := func(nodes ...int) func(int, string, backend.Lease) fate { return only(nodes...) }
	for name, tc := range map[string]struct {
		held []int // by another
		up   []int
		want error
	}{
		"all refuse":                       {[]int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4}, backend.ErrHeld},
		"majority refuses, others dead":    {[]int{2, 3, 4}, []int{2, 3, 4}, backend.ErrHeld},
		"even split, one node silent":      {[]int{0, 1}, []int{0, 1, 2, 3}, backend.ErrHeld},
		"too few answer to call it held":   {[]int{3, 4}, []int{3, 4}, nil},
		"granted by a minority, rest dead": {nil, []int{0, 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(0, 0, 0, 0, 0)
				for _, i := range tc.held {
					c[i].owner, c[i].ends = "other", time.Now().Add(time.Hour)
				}
				q := c.client(t, nil, dead(tc.up...))
				_, err := q.Acquire(t.Context(), lease("a"))
				if err == nil || errors.Is(err, backend.ErrHeld) != (tc.want != nil) {
					t.Fatalf("got %v, want ErrHeld to be %v", err, tc.want != nil)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a node's time-out passes for the caller's deadline: %v", err)
				}
				if tc.want == nil {
					q.Release(t.Context(), lease("a"))
				}
				time.Sleep(5 * time.Second)
				if n := c.keys(); n != len(tc.held) {
					t.Errorf("%d nodes hold a key, want only the %d of another", n, len(tc.held))
				}
			})
		})
	}
}

// Case 2: cancel is prompt, and its release leaves nothing.
func TestCancelIsPromptAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0, 0, 0)
		q := c.client(t, nil, func(int, string, backend.Lease) fate { return fate{there: 125 * ms, back: 125 * ms} })
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		begun, want := time.Now(), lease("a")
		_, err := q.Acquire(ctx, want)
		if took := time.Since(begun); took != 100*ms || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v after %v, want the deadline after 100ms", err, took)
		}
		if err := q.Release(ctx, want); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("release under a dead context: got %v", err)
		}
		time.Sleep(time.Second)
		if n := c.keys(); n != 0 {
			t.Errorf("%d nodes hold a key, want none", n)
		}
	})
}

// Case 37: one dead node does not make a release or a renewal fail.
func TestMinorityDeadChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0, 0, 0)
		q := c.client(t, nil, only(0, 1, 2))
		got := mustAcquire(t, q, "a")
		if err := q.Renew(t.Context(), got); err != nil {
			t.Error(err)
		}
		if err := q.Release(t.Context(), got); err != nil {
			t.Error(err)
		}
	})
}

// Case 36: what was lost on so many nodes that no majority can hold it is lost.
func TestLostIsDefinite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0)
		q := c.client(t, nil, nil)
		got := mustAcquire(t, q, "a")
		c[0].wipe()
		if err := q.Renew(t.Context(), got); err != nil {
			t.Errorf("one node of three forgot: %v", err)
		}
		time.Sleep(time.Second)
		if n := c.keys(); n != 3 {
			t.Errorf("%d nodes hold the key after a renewal, want 3: the one that forgot is refilled", n)
		}
		c[0].wipe()
		c[1].wipe()
		if err := q.Renew(t.Context(), got); !errors.Is(err, backend.ErrLost) {
			t.Errorf("two nodes of three forgot: got %v, want ErrLost", err)
		}
		time.Sleep(time.Second)
		if n := c.keys(); n != 1 {
			t.Errorf("%d nodes hold the key, want 1: a hold that is lost is not refilled", n)
		}
	})
}

// A refill that comes after the release is not sent, and one that was sent
// before is released behind it.
func TestRefillDoesNotOutliveTheRelease(t *testing.T) {
	for _, late := range []time.Duration{0, 50 * ms} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(0, 0, 0)
			q := c.client(t, nil, func(node int, op string, _ backend.Lease) fate {
				if node == 0 && op != "release" {
					return fate{there: 20 * ms, back: 20 * ms}
				}
				return fate{}
			})
			got := mustAcquire(t, q, "a")
			time.Sleep(time.Second)
			c[0].wipe()
			if err := q.Renew(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			time.Sleep(late)
			if err := q.Release(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if n := c.keys(); n != 0 {
				t.Errorf("released %v after the renewal: %d nodes hold a key, want none", late, n)
			}
		})
	}
}

// The lease ends when fewer than a majority of its nodes hold it.
func TestTermIsThatOfTheMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes []backend.Backend
		for _, ttl := range []time.Duration{5, 1, 3, 2, 4} {
			nodes = append(nodes, &shorter{memory.New(nil), ttl * time.Second})
		}
		q, err := quorum.New(nodes, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := mustAcquire(t, q, "a")
		// Three of them answer first, whichever: the shortest of any three.
		if got.TTL > 3*time.Second || got.TTL < time.Second {
			t.Errorf("got a term of %v, want that of the third longest of those that counted", got.TTL)
		}
		time.Sleep(time.Second)
		standing := 0
		for _, n := range nodes {
			if n.(*shorter).ttl >= got.TTL {
				standing++
			}
		}
		if standing < 3 {
			t.Errorf("only %d nodes hold the key to the end of %v", standing, got.TTL)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// shorter grants less than is asked for.
type shorter struct {
	backend.Backend
	ttl time.Duration
}

func (s *shorter) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	want.TTL = min(want.TTL, s.ttl)
	return s.Backend.Acquire(ctx, want)
}

// An owner whose release is under way acquires nothing, and is told so.
func TestReleasedOwnerAcquiresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0, 0, 0)
		q := c.client(t, nil, func(int, string, backend.Lease) fate { return fate{there: 100 * ms} })
		go q.Release(t.Context(), lease("a"))
		time.Sleep(ms)
		if got, err := q.Acquire(t.Context(), lease("a")); err == nil {
			t.Errorf("granted token %d to a released owner", got.Token)
		}
		time.Sleep(time.Second)
		if n := c.keys(); n != 0 {
			t.Errorf("%d nodes hold a key, want none", n)
		}
	})
}

// unfenced gives no tokens.
type unfenced struct{ backend.Backend }

func (u unfenced) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	got, err := u.Backend.Acquire(ctx, want)
	got.Token = 0
	return got, err
}

func TestNodeWithoutTokensDoesNotCountAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := quorum.New([]backend.Backend{memory.New(nil), unfenced{memory.New(nil)}, unfenced{memory.New(nil)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// Whichever two answer first: two without tokens agree on none, and one
		// of each never agree.
		got, err := q.Acquire(t.Context(), lease("a"))
		if err == nil && got.Token != 0 {
			t.Errorf("token %d stands on one node only", got.Token)
		}
		q.Release(t.Context(), lease("a"))
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
