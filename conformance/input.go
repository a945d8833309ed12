package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var inputChecks = []check{
	{"input/key", 15, "A key that is empty, too long or has a NUL is refused by every verb, with an InvalidError of Key.", 0, inputKey},
	{"input/owner", 15, "An empty owner is refused by every verb, with an InvalidError of Owner, and leaves nothing.", 0, inputOwner},
	{"input/ttl", 15, "A term that is out of bounds or not in whole milliseconds is refused by every verb, with an InvalidError of TTL, and leaves nothing.", 0, inputTTL},
	{"input/token", 15, "A token that is negative or above MaxToken is refused by every verb, with an InvalidError of Token, and leaves nothing.", 0, inputToken},
}

// verbs are the calls of b, Wait among them if there is one.
func (t *trial) verbs(b backend.Backend) map[string]func(context.Context, backend.Lease) error {
	all := map[string]func(context.Context, backend.Lease) error{
		"Renew":   b.Renew,
		"Release": b.Release,
		"Acquire": func(ctx context.Context, l backend.Lease) error {
			_, err := b.Acquire(ctx, l)
			return err
		},
	}
	if w := t.waiter(b); w != nil {
		all["Wait"] = func(ctx context.Context, l backend.Lease) error {
			_, err := w.Wait(ctx, l)
			return err
		}
	}
	return all
}

// invalid checks that every verb refuses l for its field.
func (t *trial) invalid(l backend.Lease, field, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, soon)
	defer cancel()
	for verb, call := range t.verbs(t.b) {
		err := call(ctx, l)
		var invalid *backend.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s with %s %q: %v, want an InvalidError of %s", verb, field, value, err, field)
		}
		if errors.Is(err, backend.ErrHeld) || errors.Is(err, backend.ErrLost) {
			t.Errorf("%s with %s %q: %v, which says that it is contention or loss", verb, field, value, err)
		}
		if err == nil {
			_ = t.b.Release(ctx, l)
		}
	}
}

func inputKey(t *trial) {
	for _, key := range []string{"", "\x00", t.key + "\x00", t.key + "\x00a", strings.Repeat("k", backend.MaxKey+1), strings.Repeat("k", 10_000)} {
		l := t.lease(long)
		l.Key = key
		t.invalid(l, "Key", key[:min(len(key), 100)])
	}
	t.free()
}

// invalidOf spoils an attempt at a free key, then the holder's lease.
func (t *trial) invalidOf(field, value string, spoil func(*backend.Lease)) {
	t.Helper()
	bad := t.lease(long)
	spoil(&bad)
	t.invalid(bad, field, value)
	t.free()

	held := t.acquire(t.b, t.lease(long))
	bad = held
	spoil(&bad)
	t.invalid(bad, field, value)
	t.holds(held)
	t.release(t.b, held)
	t.free()
}

func inputOwner(t *trial) {
	t.invalidOf("Owner", "", func(l *backend.Lease) { l.Owner = "" })
}

// Case 17.
func inputTTL(t *trial) {
	for _, ttl := range []time.Duration{
		0, -1, 1, math.MinInt64, -time.Second, time.Microsecond, time.Millisecond, backend.MinTTL - 1, backend.MinTTL + 1,
		time.Second + time.Microsecond, backend.MaxTTL + 1, backend.MaxTTL + time.Millisecond, math.MaxInt64,
	} {
		t.invalidOf("TTL", ttl.String(), func(l *backend.Lease) { l.TTL = ttl })
	}
}

func inputToken(t *trial) {
	for _, token := range []backend.Token{-1, math.MinInt64, backend.MaxToken + 1, math.MaxInt64} {
		t.invalidOf("Token", fmt.Sprint(token), func(l *backend.Lease) { l.Token = token })
	}
}
