package mutex_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// Case 17, and law 15.
func TestBadInputIsRefusedByName(t *testing.T) {
	n := newNetwork()
	var nothing *memory.Backend
	for _, c := range []struct {
		field string
		b     backend.Backend
		o     mutex.Options
	}{
		{"Backend", nil, mutex.Options{}},
		{"Backend", nothing, mutex.Options{}},
		{"TTL", n, mutex.Options{TTL: -time.Second}},
		{"TTL", n, mutex.Options{TTL: 1}},
		{"TTL", n, mutex.Options{TTL: ms}},
		{"TTL", n, mutex.Options{TTL: time.Second + time.Microsecond}},
		{"TTL", n, mutex.Options{TTL: backend.MaxTTL + ms}},
		{"MaxHold", n, mutex.Options{MaxHold: time.Second}},
		{"MaxHold", n, mutex.Options{MaxHold: -1}},
		{"MinHold", n, mutex.Options{MinHold: -1}},
		{"MinHold", n, mutex.Options{MinHold: 11 * time.Second}},
		{"RenewEvery", n, mutex.Options{RenewEvery: validity}},
		{"RenewEvery", n, mutex.Options{RenewEvery: time.Microsecond}},
	} {
		_, err := mutex.NewSession(c.b, &c.o)
		wantInvalid(t, err, c.field)
		_, err = mutex.New(c.b, "k", &c.o)
		wantInvalid(t, err, c.field)
	}
	s, err := mutex.NewSession(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", strings.Repeat("k", 10_000), "a\x00b"} {
		_, err := mutex.New(n, key, nil)
		wantInvalid(t, err, "Key")
		wantInvalid(t, s.Mutex(key).Lock(t.Context()), "Key")
		wantInvalid(t, s.Mutex(key).TryLock(t.Context()), "Key")
	}
	if got := n.all(""); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *backend.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != field {
		t.Errorf("error is %v; want an InvalidError of %s", err, field)
	}
}

func TestLongTermsRaiseTheDefaultOfMaxHold(t *testing.T) {
	if _, err := mutex.NewSession(newNetwork(), &mutex.Options{TTL: backend.MaxTTL, RenewEvery: -1}); err != nil {
		t.Error(err)
	}
}

// What the backend refuses is returned as it is, and nothing is left behind.
func TestRefusalOfTheBackendIsReturned(t *testing.T) {
	n := newNetwork()
	n.acquire = func(context.Context, backend.Lease) (backend.Lease, error) {
		return backend.Lease{}, &backend.InvalidError{Field: "TTL", Reason: "is more than this node allows"}
	}
	wantInvalid(t, newMutex(t, n, nil).Lock(t.Context()), "TTL")
	if got := len(n.all("")); got != 1 {
		t.Errorf("%d calls; want 1", got)
	}
}
