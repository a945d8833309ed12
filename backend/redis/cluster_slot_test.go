package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend/redis"
)

func TestKeysWithABraceAndNoTagHaveATagOfTheSameSlot(t *testing.T) {
	// The specification's own example of its CRC-16.
	if got := redis.Slot("123456789"); got != 0x31c3%16384 {
		t.Fatalf("got slot %d, want %d", got, 0x31c3%16384)
	}
	began := time.Now()
	for _, key := range []string{"a}b", "{}k", "}{", "}", strings.Repeat("}", 1024)} {
		side := redis.CounterKey(key)
		if got, want := redis.Slot(hashed(side)), redis.Slot(key); got != want {
			t.Errorf("%q: the side key is in slot %d, want %d", key, got, want)
		}
		if !strings.HasSuffix(side, "\x00"+key) {
			t.Errorf("%q: two such keys may have one side key: %q", key, side)
		}
	}
	t.Logf("all tags were found in %v", time.Since(began))
}
