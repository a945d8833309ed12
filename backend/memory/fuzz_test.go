package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
)

// Case 15: owners are compared whole, whatever bytes they are of.
func FuzzOwners(f *testing.F) {
	for _, s := range [][2]string{
		{"worker-1", "worker-10"}, {"worker-10", "worker-1"}, {"", "a"}, {"a", ""}, {"a", "a\x00"}, {"\x00", "\x00\x00"},
		{"a\x00b", "a\x00c"}, {"A", "a"}, {"\xff", "\xfe"}, {"*", "a"}, {"%", "a"}, {"1", "01"}, {"same", "same"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, owner, other string) {
		b, ctx := memory.New(nil), t.Context()
		mine := backend.Lease{Key: "k", Owner: owner, TTL: time.Hour, Start: time.Now()}
		theirs := mine
		theirs.Owner = other
		if mine.Validate() != nil || theirs.Validate() != nil {
			return // FuzzValidate says when
		}
		held, err := b.Acquire(ctx, mine)
		if err != nil || held.Owner != owner {
			t.Fatalf("Acquire: %v, owner returned: %v", err, held.Owner == owner)
		}
		theirs.Token = held.Token
		same := owner == other
		if _, err := b.Acquire(ctx, theirs); same && err != nil || !same && !errors.Is(err, backend.ErrHeld) {
			t.Errorf("owners %q and %q: Acquire by the other: %v", owner, other, err)
		}
		if err := b.Renew(ctx, theirs); same && err != nil || !same && !errors.Is(err, backend.ErrLost) {
			t.Errorf("owners %q and %q: Renew by the other: %v", owner, other, err)
		}
		if err := b.Release(ctx, theirs); same && err != nil || !same && !errors.Is(err, backend.ErrLost) {
			t.Errorf("owners %q and %q: Release by the other: %v", owner, other, err)
		}
		if err := b.Renew(ctx, held); same == (err == nil) {
			t.Errorf("owners %q and %q: Renew after the other's Release: %v", owner, other, err)
		}
	})
}

// Case 18: keys that differ are different locks.
func FuzzKeys(f *testing.F) {
	for _, s := range [][2]string{
		{"a", "bc"}, {"ab", "c"}, {"{a}", "a"}, {"a", "A"}, {"a ", "a"}, {"\xff", "\xfe"}, {"k", "k"}, {"k:token", "k"}, {"", "k"}, {"\x00", "k"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, key, other string) {
		b, ctx := memory.New(nil), t.Context()
		first := backend.Lease{Key: key, Owner: "o1", TTL: time.Hour, Start: time.Now()}
		second := backend.Lease{Key: other, Owner: "o2", TTL: time.Hour, Start: time.Now()}
		if first.Validate() != nil || second.Validate() != nil {
			return // FuzzValidate says when
		}
		held, err := b.Acquire(ctx, first)
		if err != nil || held.Key != key {
			t.Fatalf("Acquire of %q: %q, %v", key, held.Key, err)
		}
		beside, err := b.Acquire(ctx, second)
		if key == other && !errors.Is(err, backend.ErrHeld) || key != other && err != nil {
			t.Errorf("Acquire of %q beside %q: %v", other, key, err)
		}
		if err := b.Release(ctx, held); err != nil {
			t.Errorf("Release of %q: %v", key, err)
		}
		if err == nil { // else it lasts an hour, and millions of them are too many
			err = b.Release(ctx, beside)
		}
		if err != nil && !errors.Is(err, backend.ErrHeld) {
			t.Errorf("Release of %q: %v", other, err)
		}
	})
}

// Token floors of any size are reached exactly or refused, and what follows is above.
func FuzzTokens(f *testing.F) {
	const most = int64(backend.MaxToken)
	for _, s := range [][2]int64{{0, 0}, {1, 2}, {2, 1}, {-1, 5}, {most, 0}, {most - 1, most}, {most + 1, 0}, {99999999999999, 99999999999998}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, floor, raise int64) {
		b, ctx := memory.New(nil), t.Context()
		want := backend.Lease{Key: "k", Owner: "o", TTL: time.Hour, Start: time.Now(), Token: backend.Token(floor)}
		held, err := b.Acquire(ctx, want)
		if want.Validate() != nil {
			if err == nil {
				t.Errorf("a floor of %d was granted", floor)
			}
			return
		}
		if err != nil || held.Token != backend.Token(max(floor, 1)) {
			t.Fatalf("a floor of %d: got %d, %v", floor, held.Token, err)
		}
		want.Token = backend.Token(raise)
		raised, err := b.Acquire(ctx, want)
		switch {
		case want.Validate() != nil && err == nil:
			t.Errorf("a raise to %d was granted", raise)
		case want.Validate() == nil && (err != nil || raised.Token != max(held.Token, want.Token)):
			t.Errorf("a raise from %d to %d: got %d, %v", held.Token, raise, raised.Token, err)
		case err == nil:
			held = raised
		}
		if err := b.Release(ctx, held); err != nil {
			t.Fatal(err)
		}
		next, err := b.Acquire(ctx, backend.Lease{Key: "k", Owner: "p", TTL: time.Hour, Start: time.Now()})
		if full := held.Token == backend.MaxToken; full == (err == nil) || err == nil && next.Token <= held.Token {
			t.Errorf("after %d: got %d, %v", held.Token, next.Token, err)
		}
		if err == nil { // as above
			_ = b.Release(ctx, next)
		}
	})
}
