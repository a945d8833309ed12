package backend_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Cases 15, 17 and 18: what is refused is refused by name, and nothing else is.
func FuzzValidate(f *testing.F) {
	f.Add("k", "o", int64(time.Second), int64(0))
	f.Add("", "o", int64(time.Second), int64(0))
	f.Add("a\x00b", "o", int64(time.Second), int64(0))
	f.Add(strings.Repeat("k", backend.MaxKey), "\x00", int64(backend.MaxTTL), int64(backend.MaxToken))
	f.Add(strings.Repeat("k", backend.MaxKey+1), "o", int64(time.Second), int64(0))
	f.Add("\xff", "", int64(time.Second), int64(0))
	f.Add("k", "o", int64(time.Second), int64(-1))
	f.Add("k", "o", int64(time.Second), int64(backend.MaxToken)+1)
	for _, ttl := range []int64{0, -1, 1, math.MinInt64, math.MaxInt64, int64(backend.MinTTL) - 1, int64(backend.MaxTTL) + 1e6} {
		f.Add("k", "o", ttl, int64(0))
	}
	f.Fuzz(func(t *testing.T, key, owner string, ttl, token int64) {
		l := backend.Lease{Key: key, Owner: owner, TTL: time.Duration(ttl), Token: backend.Token(token)}
		wrong := map[string]bool{
			"Key":   len(key) < 1 || len(key) > 1024 || bytes.ContainsRune([]byte(key), 0),
			"Owner": len(owner) == 0,
			"TTL":   ttl < 10e6 || ttl > 24*3600*1e9 || ttl%1e6 != 0,
			"Token": token < 0 || token > 1<<53,
		}
		err := l.Validate()
		if err == nil {
			for field, is := range wrong {
				if is {
					t.Errorf("key %q, owner of %d bytes, term %d, token %d: no error, though %s is wrong", key, len(owner), ttl, token, field)
				}
			}
			if v := l.TTL - backend.Drift(l.TTL); v <= 0 || v >= l.TTL {
				t.Errorf("a term of %v is valid for %v", l.TTL, v)
			}
			return
		}
		var e *backend.InvalidError
		if !errors.As(err, &e) || !wrong[e.Field] || len(err.Error()) > 200 {
			t.Errorf("key %q, owner of %d bytes, term %d, token %d: got %v", key, len(owner), ttl, token, err)
		}
	})
}
