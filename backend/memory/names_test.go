package memory_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
)

// Case 48: a million names, with tokens, leave nothing behind, though some
// are never released.
func TestAMillionNamesLeaveNothing(t *testing.T) {
	b := memory.New(nil)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 1_000_000 {
		ttl := 20 * time.Second
		if i%10 == 0 {
			ttl = backend.MinTTL
		}
		l := backend.Lease{Key: "name-" + strconv.Itoa(i), Owner: "o", TTL: ttl, Start: time.Now()}
		held, err := b.Acquire(t.Context(), l)
		if err != nil || held.Token != backend.Token(i+1) {
			t.Fatalf("name %d: token %d, %v", i, held.Token, err)
		}
		if i%10 == 0 {
			continue // its holder dies
		}
		if err := b.Release(t.Context(), held); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for b.Keys() > 0 && time.Now().Before(deadline) {
		time.Sleep(backend.MinTTL)
	}
	if after := heap(); b.Keys() != 0 || after > before+8<<20 {
		t.Errorf("%d keys are kept, and %d bytes, of which there were %d before", b.Keys(), after, before)
	}
}
