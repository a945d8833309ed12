package fencing_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
)

// Case 47: whatever tokens come in whatever order, a gate lets through what is
// not below the largest so far, and nothing else.
func FuzzGate(f *testing.F) {
	seed := func(tokens ...int64) []byte {
		var b []byte
		for _, n := range tokens {
			b = binary.BigEndian.AppendUint64(b, uint64(n))
		}
		return b
	}
	f.Add(seed(1, 2, 1, 2, 3))
	f.Add(seed(0, -1, 5, -9223372036854775808, 5))
	f.Add(seed(1<<53, 1<<53+1, 1<<53, 9223372036854775807, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		var admitted, written fencing.Gate
		var largest, last int64
		for ; len(b) >= 8; b = b[8:] {
			n := int64(binary.BigEndian.Uint64(b))
			wrote := false
			err := written.Do(fencing.Token(n), func() error { wrote, last = true, n; return nil })
			if again := admitted.Admit(fencing.Token(n)); (err == nil) != (again == nil) {
				t.Errorf("token %d after %d: Do says %v, Admit %v", n, largest, err, again)
			}
			var invalid *backend.InvalidError
			var stale *fencing.StaleError
			switch {
			case n <= 0 && !errors.As(err, &invalid), n > 0 && n < largest && !errors.Is(err, fencing.ErrStale),
				n > 0 && n >= largest && err != nil, wrote != (err == nil):
				t.Errorf("token %d after %d: %v, wrote: %v", n, largest, err, wrote)
			case errors.As(err, &stale) && (int64(stale.Token) != n || int64(stale.Seen) != largest):
				t.Errorf("token %d after %d: the error says %d after %d", n, largest, stale.Token, stale.Seen)
			}
			largest = max(largest, n)
			if largest != last && largest > 0 {
				t.Errorf("the last write has token %d, the largest is %d", last, largest)
			}
		}
	})
}

// A counter gives what was asked for at least, more than before, and no token
// that is none.
func FuzzCounter(f *testing.F) {
	f.Add(int64(0), int64(0), int64(1))
	f.Add(int64(5), int64(3), int64(1<<53))
	f.Add(int64(-1), int64(1<<53+1), int64(-9223372036854775808))
	f.Fuzz(func(t *testing.T, a, b, c int64) {
		var counter fencing.Counter
		last := int64(0)
		for _, floor := range []int64{a, b, c} {
			got, err := counter.Next(t.Context(), "k", fencing.Token(floor))
			good := floor >= 0 && floor <= 1<<53 && last < 1<<53
			switch {
			case good != (err == nil):
				t.Errorf("floor %d after %d: got %d, %v", floor, last, got, err)
			case err == nil && (int64(got) < floor || int64(got) <= last || got > backend.MaxToken):
				t.Errorf("floor %d after %d: got %d", floor, last, got)
			}
			last = max(last, int64(got))
		}
	})
}
