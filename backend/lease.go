package backend

import (
	"fmt"
	"strings"
	"time"
)

// The bounds of a valid lease.
const (
	MaxKey = 1024                  // bytes in a key
	MinTTL = 10 * time.Millisecond // a shorter term is used up by drift and travel
	MaxTTL = 24 * time.Hour        // an orphan lives this long at most; drivers may set less

	// MaxToken is what a double holds exactly, so that servers and clients that
	// count in doubles (Lua, JavaScript) are never a token off.
	MaxToken Token = 1 << 53
)

// Drift is the part of a term that is given up for clocks that run at different
// rates and for rounding: ttl/100 + 2 ms. It is the allowance of the Redlock
// page (Redis documentation, "Distributed locks with Redis").
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// Until is the end of the lease's validity: its holder may rely on it before,
// and not after. It means nothing while Start is zero.
func (l Lease) Until() time.Time { return l.Start.Add(l.TTL - Drift(l.TTL)) }

// Ended says whether the whole term has passed; never, if Start is zero.
func (l Lease) Ended(now time.Time) bool {
	return !l.Start.IsZero() && !now.Before(l.Start.Add(l.TTL))
}

// Validate refuses what no backend takes, with an *InvalidError.
func (l Lease) Validate() error {
	if err := ValidateKey(l.Key); err != nil {
		return err
	}
	switch {
	case l.Owner == "":
		return &InvalidError{Field: "Owner", Reason: "is empty"}
	case l.Token < 0 || l.Token > MaxToken:
		return &InvalidError{Field: "Token", Reason: fmt.Sprintf("is %d, not in 0 to 2^53", l.Token)}
	}
	return ValidateTTL(l.TTL)
}

// ValidateKey refuses a key that is empty, longer than MaxKey, or has a NUL.
func ValidateKey(key string) error {
	switch {
	case key == "":
		return &InvalidError{Field: "Key", Reason: "is empty"}
	case len(key) > MaxKey:
		return &InvalidError{Field: "Key", Reason: fmt.Sprintf("has %d bytes, more than %d", len(key), MaxKey)}
	case strings.IndexByte(key, 0) >= 0:
		return &InvalidError{Field: "Key", Reason: "contains a NUL byte"}
	}
	return nil
}

// ValidateTTL refuses a term that is out of bounds or not in whole milliseconds.
func ValidateTTL(ttl time.Duration) error {
	switch {
	case ttl < MinTTL:
		return &InvalidError{Field: "TTL", Reason: fmt.Sprintf("is %v, less than %v", ttl, MinTTL)}
	case ttl > MaxTTL:
		return &InvalidError{Field: "TTL", Reason: fmt.Sprintf("is %v, more than %v", ttl, MaxTTL)}
	case ttl%time.Millisecond != 0:
		return &InvalidError{Field: "TTL", Reason: fmt.Sprintf("is %v, not in whole milliseconds", ttl)}
	}
	return nil
}
