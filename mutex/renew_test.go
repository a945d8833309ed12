package mutex_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

func TestRenewalsKeepAHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		h, begin := hold(t, newMutex(t, n, nil)), time.Now()
		time.Sleep(1000 * time.Second) // each gap is one of twelve
		if err := h.Err(); err != nil {
			t.Fatal(err)
		}
		last, gaps := begin, make(map[time.Duration]bool)
		for _, c := range n.all("renew") {
			if gap := c.at.Sub(last); gap > validity/3 || gap < validity*3/10 {
				t.Errorf("renewed after %v; want a third of %v, less a tenth at most", gap, validity)
			}
			if !c.lease.Start.Equal(c.at) || c.lease.Token != h.Token() || c.lease.TTL != 10*time.Second {
				t.Errorf("renewed with %+v at %v", c.lease, c.at)
			}
			gaps[c.at.Sub(last)] = true
			last = c.at
		}
		if len(gaps) < 10 {
			t.Errorf("waited %v: those who began together stay together", gaps)
		}
		if got, want := h.Until(), last.Add(validity); !got.Equal(want) {
			t.Errorf("Until is %v; want %v", got, want)
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		releases := n.all("release")
		if len(releases) != 1 || !releases[0].lease.Start.Equal(last) {
			t.Errorf("released with %+v; want once, with Start %v", releases, last)
		}
	})
}

// Holds that are due at nearly the same time are renewed together: the tenth over
// which they are spread has thirteen steps.
func TestRenewalsAreGathered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		s, err := mutex.NewSession(n, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		for i := range 200 {
			hold(t, s.Mutex(fmt.Sprint(i)))
		}
		time.Sleep(3500 * time.Millisecond)
		renewals, at := n.all("renew"), make(map[time.Time]bool)
		for _, c := range renewals {
			at[c.at] = true
		}
		if len(renewals) != 200 || len(at) > 14 || len(at) < 5 {
			t.Errorf("%d renewals at %d instants; want 200 at 5 to 14", len(renewals), len(at))
		}
	})
}

// Cases 21 and 23.
func TestFailedRenewalsDoNotEndAValidHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.renew = func(context.Context, backend.Lease) error { return errLink }
		h := hold(t, newMutex(t, n, nil))
		time.Sleep(9 * time.Second)
		if tries := len(n.all("renew")); h.Err() != nil || tries < 3 || tries > 100 {
			t.Errorf("after %d tries: %v; want some tries and no loss", tries, h.Err())
		}
		n.change(func() { n.renew = nil })
		time.Sleep(time.Minute)
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(n.all("release")); n != 1 {
			t.Errorf("%d releases; want 1", n)
		}
	})
}

// Case 22.
func TestRenewalWhoseReplyIsLostDoesNotEndTheHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		lose := true
		n.renew = func(ctx context.Context, l backend.Lease) error {
			err := n.inner.Renew(ctx, l)
			if lose = !lose; !lose {
				return errLink
			}
			return err
		}
		h := hold(t, newMutex(t, n, nil))
		time.Sleep(time.Minute)
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Cases 24 and 25.
func TestStolenLeaseIsLostAtOnceAndStaysStolen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		h := hold(t, newMutex(t, n, nil))
		steal(t, n.inner, n.all("acquire")[0].lease.Owner)
		<-h.Lost()
		if got := len(n.all("renew")); got != 1 || reason(h) != mutex.Taken {
			t.Errorf("lost after %d renewals: %v; want one and %q", got, h.Err(), mutex.Taken)
		}
		wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
		synctest.Wait()
		if got := n.all("release"); len(got) != 0 {
			t.Errorf("released what is another's: %v", got)
		}
	})
}

// Case 26.
func TestMaxHoldBoundsAHoldThatIsRenewed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		h, begin := hold(t, newMutex(t, n, &mutex.Options{MaxHold: 25 * time.Second})), time.Now()
		<-h.Lost()
		wantNow(t, begin, 25*time.Second-ms)
		if got := reason(h); got != mutex.MaxHold {
			t.Errorf("the reason is %q; want %q", got, mutex.MaxHold)
		}
		renewals := len(n.all("renew"))
		time.Sleep(time.Minute)
		if got := len(n.all("renew")); got != renewals {
			t.Errorf("%d renewals after the end", got-renewals)
		}
		wantErr(t, h.Unlock(t.Context()), mutex.ErrLost)
	})
}

// Case 28.
func TestRenewalHasAContextOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		var h *mutex.Hold
		tries := 0
		n.renew = func(ctx context.Context, l backend.Lease) error {
			end, ok := ctx.Deadline()
			if left := time.Until(h.Until()); !ok || time.Until(end) > left/2 {
				t.Errorf("ends in %v with %v of validity left; want half at most", time.Until(end), left)
			}
			tries++
			return silence(ctx, l)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h, _ = newMutex(t, n, nil).Hold(ctx)
		<-h.Lost()
		if tries < 3 {
			t.Errorf("%d tries; want some", tries)
		}
	})
}

func TestRenewEvery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		h := hold(t, newMutex(t, n, &mutex.Options{RenewEvery: time.Second}))
		time.Sleep(10 * time.Second)
		if got := len(n.all("renew")); got < 10 || got > 12 || h.Err() != nil {
			t.Errorf("%d renewals in 10 s: %v; want about 10", got, h.Err())
		}
		h.Unlock(t.Context())

		begin := time.Now()
		h = hold(t, newMutex(t, n, &mutex.Options{RenewEvery: -1}))
		renewals := len(n.all("renew"))
		<-h.Lost()
		wantNow(t, begin, validity-ms)
		if got := len(n.all("renew")); got != renewals {
			t.Errorf("renewed %d times; want never", got-renewals)
		}
	})
}

func TestRenewedValidityCountsFromBeforeTheRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork()
		n.renew = func(ctx context.Context, l backend.Lease) error {
			time.Sleep(2 * time.Second)
			return n.inner.Renew(ctx, l)
		}
		h := hold(t, newMutex(t, n, nil))
		time.Sleep(5500 * ms) // answered by 5.3 s; the next one is due at 5.9 s or later
		asked := n.all("renew")
		if want := asked[0].at.Add(validity); len(asked) != 1 || !h.Until().Equal(want) {
			t.Errorf("Until is %v after %d renewals; want %v", h.Until(), len(asked), want)
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
