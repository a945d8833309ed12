package mutex_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/retry"
)

// Cases 11, 36 and 40: these identities never change.
func TestErrorsOfLock(t *testing.T) {
	all := map[string]error{
		"held": mutex.ErrHeld, "lost": mutex.ErrLost, "not locked": mutex.ErrNotLocked,
		"closed": mutex.ErrClosed, "link": errLink, "canceled": context.Canceled, "deadline": context.DeadlineExceeded,
	}
	within := func(t *testing.T, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		t.Cleanup(cancel)
		return ctx
	}
	for _, c := range []struct {
		name string
		lock func(t *testing.T, n *network) error
		want string // the names of what it is
	}{
		{"held", func(t *testing.T, n *network) error {
			hold(t, newMutex(t, n.inner, nil))
			return newMutex(t, n, nil).TryLock(t.Context())
		}, "held"},
		{"held in this session", func(t *testing.T, n *network) error {
			m := newMutex(t, n, nil)
			hold(t, m)
			return m.TryLock(t.Context())
		}, "held"},
		{"the policy says stop", func(t *testing.T, n *network) error {
			hold(t, newMutex(t, n.inner, nil))
			return newMutex(t, n, &mutex.Options{Wait: retry.Limit(retry.Constant(ms), 3)}).Lock(t.Context())
		}, "held"},
		{"cancelled while another holds it", func(t *testing.T, n *network) error {
			hold(t, newMutex(t, n.inner, nil))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			return newMutex(t, n, nil).Lock(ctx)
		}, "canceled held"},
		{"too late while another holds it", func(t *testing.T, n *network) error {
			hold(t, newMutex(t, n.inner, nil))
			return newMutex(t, n, nil).Lock(within(t, time.Second))
		}, "deadline held"},
		{"too late while this session holds it", func(t *testing.T, n *network) error {
			m := newMutex(t, n, nil)
			hold(t, m)
			return m.Lock(within(t, time.Second))
		}, "deadline held"},
		{"too late while nobody answers", func(t *testing.T, n *network) error {
			n.acquire = silentAcquire
			return newMutex(t, n, nil).Lock(within(t, time.Second))
		}, "deadline"},
		{"a dead context", func(t *testing.T, n *network) error { return newMutex(t, n, nil).Lock(dead(t)) }, "canceled"},
		{"the link is down", func(t *testing.T, n *network) error {
			n.acquire = func(context.Context, backend.Lease) (backend.Lease, error) { return backend.Lease{}, errLink }
			return newMutex(t, n, nil).Lock(t.Context())
		}, "link"},
		{"granted too late", func(t *testing.T, n *network) error {
			n.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
				defer time.Sleep(time.Minute)
				return n.inner.Acquire(ctx, l)
			}
			return newMutex(t, n, nil).Lock(t.Context())
		}, ""},
		{"closed", func(t *testing.T, n *network) error {
			m := newMutex(t, n, nil)
			m.Session().Close(t.Context())
			return m.Lock(t.Context())
		}, "closed"},
		{"closed meanwhile", func(t *testing.T, n *network) error {
			hold(t, newMutex(t, n.inner, nil))
			m := newMutex(t, n, nil)
			time.AfterFunc(time.Second, func() { m.Session().Close(t.Context()) })
			return m.Lock(t.Context())
		}, "closed held"},
		{"not a key", func(t *testing.T, n *network) error {
			s, err := mutex.NewSession(n, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s.Mutex("").Lock(t.Context())
		}, "invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				err := c.lock(t, newNetwork())
				for name, target := range all {
					if errors.Is(err, target) != strings.Contains(c.want, name) {
						t.Errorf("Lock = %v; is it %q: %v", err, name, errors.Is(err, target))
					}
				}
				var invalid *backend.InvalidError
				if errors.As(err, &invalid) != (c.want == "invalid") || err == nil || !strings.Contains(err.Error(), "k") && invalid == nil {
					t.Errorf("Lock = %v; want an error that names the key", err)
				}
				time.Sleep(time.Minute) // what is released in the background has ended
			})
		})
	}
}

// Case 14: nothing in the options can make two attempts have one owner.
func TestNoOptionSetsOwners(t *testing.T) {
	o := reflect.TypeFor[mutex.Options]()
	for i := range o.NumField() {
		if f := o.Field(i); strings.Contains(strings.ToLower(f.Name), "owner") || f.Type.Kind() == reflect.String {
			t.Errorf("Options.%s may set an owner", f.Name)
		}
	}
}
