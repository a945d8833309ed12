package mutex_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
)

// Cases 36 and 40: these identities never change.
func TestErrorsOfUnlock(t *testing.T) {
	all := map[string]error{
		"held": mutex.ErrHeld, "lost": mutex.ErrLost, "not locked": mutex.ErrNotLocked,
		"closed": mutex.ErrClosed, "link": errLink, "canceled": context.Canceled, "deadline": context.DeadlineExceeded,
	}
	for _, c := range []struct {
		name   string
		before func(t *testing.T, n *network, m *mutex.Leased)
		want   string
		reason mutex.Reason
	}{
		{"released", func(*testing.T, *network, *mutex.Leased) {}, "", ""},
		{"expired", func(t *testing.T, n *network, m *mutex.Leased) {
			n.change(func() { n.renew = func(context.Context, backend.Lease) error { return errors.New("down") } })
			time.Sleep(time.Minute)
		}, "lost", mutex.Expired},
		{"stolen", func(t *testing.T, n *network, m *mutex.Leased) {
			steal(t, n.inner, n.all("acquire")[0].lease.Owner)
		}, "lost", mutex.Taken},
		{"max hold", func(*testing.T, *network, *mutex.Leased) { time.Sleep(2 * time.Hour) }, "lost", mutex.MaxHold},
		{"session closed", func(t *testing.T, n *network, m *mutex.Leased) { m.Session().Close(t.Context()) },
			"lost", mutex.Closed},
		{"node down", func(t *testing.T, n *network, m *mutex.Leased) {
			n.change(func() { n.release = func(context.Context, backend.Lease) error { return errLink } })
		}, "link", ""},
		{"not locked", func(t *testing.T, n *network, m *mutex.Leased) { m.Unlock(t.Context()) }, "not locked", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := newNetwork()
				m := newMutex(t, n, nil)
				if err := m.Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.before(t, n, m)
				err := m.Unlock(t.Context())
				if (err == nil) != (c.want == "") {
					t.Errorf("Unlock = %v", err)
				}
				for name, target := range all {
					if errors.Is(err, target) != (name == c.want) {
						t.Errorf("Unlock = %v; is it %q: %v", err, name, errors.Is(err, target))
					}
				}
				var lost *mutex.LostError
				if errors.As(err, &lost); (lost != nil) != (c.reason != "") || lost != nil && (lost.Reason != c.reason || lost.Key != "k") {
					t.Errorf("lost: %+v; want %q", lost, c.reason)
				}
			})
		})
	}
}
