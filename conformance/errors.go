package conformance

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var errorChecks = []check{
	{"errors/kinds", 12, "Held, lost, cancelled, late and invalid are five different errors.", 0, errorKinds},
	{"errors/text", 12, "An error names the key and never an owner.", 0, errorText},
}

// kind is one error of each kind that can be had from outside, and what
// errors.Is must find in it.
type kind struct {
	what string
	err  error
	is   error // nil: an InvalidError
}

func (t *trial) kinds() []kind {
	cancelled, cancel := context.WithCancel(t.ctx)
	cancel()
	late, cancel := context.WithDeadline(t.ctx, time.Unix(0, 0))
	defer cancel()

	held := t.acquire(t.b, t.lease(long))
	other := t.lease(long)
	bad := other
	bad.TTL = 1
	other.Token = max(held.Token, 1)
	_, refused := t.tryAcquire(t.b, t.lease(long))
	kinds := []kind{{"Acquire of a key that another holds", refused, backend.ErrHeld}}
	add := func(what string, ctx context.Context, l backend.Lease, is error, verbs ...string) {
		for _, verb := range verbs {
			call := t.verbs(t.b)[verb]
			if call == nil {
				continue // no Waiter
			}
			l.Owner = t.lease(long).Owner // none is used for two attempts
			err := call(ctx, l)
			if ctx == t.ctx && t.unknown(err) {
				err = t.persist(func() error { return call(ctx, l) })
			}
			kinds = append(kinds, kind{verb + " " + what, err, is})
		}
	}
	add("of another's lease", t.ctx, other, backend.ErrLost, "Renew", "Release")
	add("under a cancelled context", cancelled, other, context.Canceled, "Acquire", "Renew", "Release", "Wait")
	add("after the deadline", late, other, context.DeadlineExceeded, "Acquire", "Renew", "Release", "Wait")
	add("with a term of 1 ns", t.ctx, bad, nil, "Acquire", "Renew", "Release", "Wait")
	t.holds(held)
	t.release(t.b, held)
	return kinds
}

// Cases 11, 36 and 40: a golden table.
func errorKinds(t *trial) {
	for _, k := range t.kinds() {
		var invalid *backend.InvalidError
		if got := errors.As(k.err, &invalid); got != (k.is == nil) {
			t.Errorf("%s: %v: is it an InvalidError: %v, want %v", k.what, k.err, got, k.is == nil)
		}
		for _, is := range []error{backend.ErrHeld, backend.ErrLost, context.Canceled, context.DeadlineExceeded} {
			if got := errors.Is(k.err, is); got != (is == k.is) {
				t.Errorf("%s: %v: errors.Is(%q) is %v, want %v", k.what, k.err, is, got, is == k.is)
			}
		}
	}
}

func errorText(t *trial) {
	t.key = strings.NewReplacer("/", "-").Replace(t.key) // any quoting leaves it as it is
	for _, k := range t.kinds() {
		if k.err == nil {
			t.Errorf("%s: nil, want an error", k.what)
			continue
		}
		if k.is != nil && !strings.Contains(k.err.Error(), t.key) {
			t.Errorf("%s: %q does not name the key %q", k.what, k.err, t.key)
		}
		for _, owner := range t.owners {
			if strings.Contains(k.err.Error(), owner) {
				t.Errorf("%s: the error gives an owner away", k.what)
			}
		}
	}
}
