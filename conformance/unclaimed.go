package conformance

import "time"

// unclaimed are looks at what a harness says that a backend does not have, made
// in the place of a case: what was seen to work, for the report.
var unclaimed = map[string]func(*trial) string{
	"tokens/over-release": seesTokens,
	"term/ends":           seesExpiry,
}

func seesTokens(t *trial) string {
	var last int64
	for range 3 {
		got, err := t.tryAcquire(t.b, t.lease(long))
		if err != nil || int64(got.Token) <= last {
			return ""
		}
		last = int64(got.Token)
		if t.tryRelease(t.b, got) != nil {
			return ""
		}
	}
	return "tokens that rise (the harness says Unfenced)"
}

func seesExpiry(t *trial) string {
	if _, err := t.tryAcquire(t.b, t.lease(t.short)); err != nil {
		return ""
	}
	time.Sleep(t.short + t.late + 50*time.Millisecond)
	if _, err := t.tryAcquire(t.peer, t.lease(long)); err != nil {
		return ""
	}
	return "leases that end by themselves (the harness says NoExpiry)"
}
