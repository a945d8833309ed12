package redis_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// target is one server under fuzzing, with a backend that runs scripts and one
// that does not.
type target struct {
	*goredis.Client
	backends map[string]*redis.Backend
}

// targets are miniredis, whose Lua is written in Go, and all real servers here.
func targets(f *testing.F) map[redistest.Flavour]target {
	all := map[redistest.Flavour]target{}
	for _, flavour := range append(redistest.Flavours(), redistest.Miniredis) {
		if _, ok := all[flavour]; ok {
			continue
		}
		tg := target{redistest.Start(f, flavour, 1)[0].Client(), map[string]*redis.Backend{}}
		for _, plain := range []bool{false, true} {
			b, err := redis.New(tg.Client, &redis.Options{Plain: plain, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				f.Fatal(err)
			}
			f.Cleanup(func() { closeWithin(f, b) })
			tg.backends[fmt.Sprintf("plain: %v", plain)] = b
		}
		all[flavour] = tg
	}
	return all
}

// Case 18: what is kept beside a lock is in the lock's slot, is never a lock, and
// is no other lock's.
func FuzzKeys(f *testing.F) {
	for _, s := range [][2]string{
		{"a", "{a}"}, {"{a}b", "b{a}"}, {"a}", "{a}"}, {"{}", "{}{}"}, {"}{", "{"}, {"{a}{b}", "{a}"}, {"a}b", "b}a"}, {"1", "{1}"},
		{"distmutex:1:token", "token"}, {"\xff}", "\xfe}"}, {"a", "bc"}, {"ab", "c"}, {"{{a}}", "{{a}"}, {"distmutex:1:node", "node"},
	} {
		f.Add(s[0], s[1])
	}
	sides := map[string]func(string) string{
		"counter": redis.CounterKey, "tombstones": redis.TombsKey, "channel": redis.WakeChannel, "source": redis.SourceKey,
	}
	f.Fuzz(func(t *testing.T, key, other string) {
		if backend.ValidateKey(key) != nil || backend.ValidateKey(other) != nil {
			return
		}
		seen := map[string]string{redis.MarkerKey: "the marker"}
		for _, k := range []string{key, other} {
			for kind, side := range sides {
				name, whose := side(k), kind+" of "+strconv.Quote(k)
				if before, ok := seen[name]; ok && before != whose {
					t.Errorf("the %s and the %s are one key, %q", before, whose, name)
				}
				seen[name] = whose
				if !strings.Contains(name, k) {
					t.Errorf("the %s may be another lock's: %q", whose, name)
				}
				if backend.ValidateKey(name) == nil {
					t.Errorf("the %s might be a lock: %q", whose, name)
				}
				if redis.Slot(hashed(name)) != redis.Slot(hashed(k)) {
					t.Errorf("the %s is in another slot: %q", whose, name)
				}
			}
		}
	})
}

// Case 15: owners are compared whole on every server, in Lua and without.
func FuzzOwners(f *testing.F) {
	for _, s := range [][2]string{
		{"worker-1", "worker-10"}, {"worker-10", "worker-1"}, {"a", "a\x00"}, {"\x00", "\x00\x00"}, {"a\x00b", "a\x00c"}, {"A", "a"},
		{"\xff", "\xfe"}, {"1", "01"}, {"1e1", "10"}, {"nan", "nan "}, {"NX", "PX"}, {"same", "same"}, {"\r\n", "\n"}, {"$-1", "nil"},
	} {
		f.Add(s[0], s[1])
	}
	all := targets(f)
	f.Fuzz(func(t *testing.T, owner, other string) {
		mine := backend.Lease{Key: "k", Owner: owner, TTL: 20 * time.Second, Start: time.Now()}
		theirs := mine
		theirs.Owner = other
		if mine.Validate() != nil || theirs.Validate() != nil || owner == other || len(owner)+len(other) > 1<<16 {
			return
		}
		for flavour, tg := range all {
			for mode, b := range tg.backends {
				tg.FlushDB(t.Context())
				if err := unlike(t, b, mine, theirs); err != nil {
					t.Errorf("%s, %s: owners %q and %q: %v", flavour, mode, owner, other, err)
				}
			}
		}
	})
}

// unlike says in which verb the other is taken for the holder.
func unlike(t *testing.T, b *redis.Backend, mine, theirs backend.Lease) error {
	ctx := t.Context()
	held, err := b.Acquire(ctx, mine)
	if err != nil {
		return err
	}
	if _, err := b.Acquire(ctx, theirs); !errors.Is(err, backend.ErrHeld) {
		return fmt.Errorf("Acquire by the other: %w", err)
	}
	theirs.Token = max(held.Token, 1) // a loss is told only to one who had something
	if err := b.Renew(ctx, theirs); !errors.Is(err, backend.ErrLost) {
		return fmt.Errorf("Renew by the other: %w", err)
	}
	if err := b.Release(ctx, theirs); !errors.Is(err, backend.ErrLost) {
		return fmt.Errorf("Release by the other: %w", err)
	}
	if err := b.Renew(ctx, held); err != nil {
		return fmt.Errorf("Renew by the holder: %w", err)
	}
	return b.Release(ctx, held)
}

// Whatever text is in a counter and whatever floor is asked for, a token is
// exact, above all that was, and not above what a double holds. Lua counts in
// doubles, and some of them are odd.
func FuzzTokens(f *testing.F) {
	const most = int64(backend.MaxToken)
	for _, s := range []string{"", "0", "7", "007", "-1", "+1", "1.0", "1e3", " 1", "1 ", "1\n", "0x10", "nan", "inf", "9007199254740991",
		"9007199254740992", "9007199254740993", "99999999999999", "100000000000000000000000", strings.Repeat("9", 400), "1\x002", "\xff"} {
		f.Add(s, int64(0), int64(0))
		f.Add(s, most-1, most)
	}
	f.Add("3", int64(99999999999999), int64(999999999999999))
	all := targets(f)
	f.Fuzz(func(t *testing.T, counter string, floor, raise int64) {
		want := backend.Lease{Key: "k", Owner: "o", TTL: 20 * time.Second, Token: backend.Token(floor), Start: time.Now()}
		if want.Validate() != nil || raise < 0 || raise > most || len(counter) > 1<<16 {
			return
		}
		for flavour, tg := range all {
			b := tg.backends["plain: false"]
			tg.FlushDB(t.Context())
			if counter != "" {
				tg.Set(t.Context(), redis.CounterKey("k"), counter, 0)
			}
			if err := counts(t, tg.Client, b, counter, want, backend.Token(raise)); err != nil {
				t.Errorf("%s: counter %q, floor %d, raise %d: %v", flavour, counter, floor, raise, err)
			}
		}
	})
}

// counts checks a grant, a raise and the next grant over a counter.
func counts(t *testing.T, c *goredis.Client, b *redis.Backend, counter string, want backend.Lease, raise backend.Token) error {
	ctx := t.Context()
	last, err := strconv.ParseUint("0"+counter, 10, 64)
	usable := err == nil && last < uint64(backend.MaxToken) && strings.Trim(counter, "0123456789") == ""
	held, err := b.Acquire(ctx, want)
	switch {
	case !usable && (err == nil || errors.Is(err, backend.ErrHeld) || c.Exists(ctx, "k").Val() != 0):
		return fmt.Errorf("granted %d, or refused as if another held it: %w", held.Token, err)
	case !usable:
		return nil
	case err != nil:
		return err
	case held.Token <= backend.Token(last) || held.Token < want.Token || held.Token > backend.MaxToken:
		return fmt.Errorf("granted %d", held.Token)
	case want.Token > 1<<52 && held.Token != max(want.Token, backend.Token(last)+1): // the clock is not there yet
		return fmt.Errorf("granted %d, not exactly what was asked for", held.Token)
	}
	want.Token = raise
	raised, err := b.Acquire(ctx, want)
	if err != nil || raised.Token != max(held.Token, raise) {
		return fmt.Errorf("granted %d, raised to %d: %w", held.Token, raised.Token, err)
	}
	if text := c.Get(ctx, redis.CounterKey("k")).Val(); text != strconv.FormatInt(int64(raised.Token), 10) {
		return fmt.Errorf("the counter is %q after a raise to %d", text, raised.Token)
	}
	if err := b.Release(ctx, raised); err != nil {
		return err
	}
	next := want
	next.Owner, next.Token = "p", 0
	after, err := b.Acquire(ctx, next)
	if full := raised.Token == backend.MaxToken; full == (err == nil) || err == nil && after.Token <= raised.Token {
		return fmt.Errorf("granted %d after %d: %w", after.Token, raised.Token, err)
	}
	return nil
}
