package mutex_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// stolen has a lease of the session deleted while a second goroutine waits for it,
// lets another have the key for a moment, and returns the tokens in the order of
// the holds.
func stolen(t *testing.T, n *network) (first, other, second backend.Token) {
	t.Helper()
	m := newMutex(t, n, nil)
	h := hold(t, m)
	next := make(chan *mutex.Hold)
	go func() { next <- hold(t, m) }()
	synctest.Wait()
	thief := steal(t, n.inner, n.all("acquire")[0].lease.Owner)
	if err := n.inner.Release(t.Context(), thief); err != nil {
		t.Fatal(err)
	}
	if err := h.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := <-next
	if err := g.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	return h.Token(), thief.Token, g.Token()
}

// A raise within the old validity is granted anew where the key was deleted by
// hand; the tokens below it are others'. Found by a soak: seed 7030036039.
func TestLeaseThatWasDeletedByHandIsPassedOnWithNoTokenOfAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		if first, other, second := stolen(t, newNetwork()); first >= other || other >= second {
			t.Errorf("tokens are %d, then another's %d, then %d; want them to rise", first, other, second)
		}
	})
}

// Whoever does not say where a range begins has given one token.
func TestRaiseThatSaysNoFirstGivesOneToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.acquire = func(ctx context.Context, want backend.Lease) (backend.Lease, error) {
			got, err := n.inner.Acquire(ctx, want)
			got.First = 0
			return got, err
		}
		if first, other, second := stolen(t, n); first >= other || other >= second {
			t.Errorf("tokens are %d, then another's %d, then %d; want them to rise", first, other, second)
		}
		if got := len(n.all("acquire")); got != 2 {
			t.Errorf("%d calls of Acquire; want the first one and a raise", got)
		}
	})
}
