package mutex

import (
	"hash/fnv"
	"sync/atomic"
)

// rush remembers that others want a lock too. Who stood in line for it begins with
// Wait the next few times: an Acquire would be refused, and take a round trip to
// say so. Then one begins with an Acquire again, and sees if that is still so.
type rush struct{ left atomic.Int32 }

// rushes is how many calls begin with Wait after one that was refused first.
const rushes = 15

func (r *rush) on() { r.left.Store(rushes) }

// expected says whether this call begins with Wait.
func (r *rush) expected() bool { return r.left.Load() > 0 && r.left.Add(-1) >= 0 }

// rush is the one of a key, which it may share with others: what comes of that is
// a Wait for a key that is free, which does not wait.
func (s *Session) rush(key string) *rush {
	h := fnv.New32a()
	h.Write([]byte(key))
	return &s.rushing[h.Sum32()%uint32(len(s.rushing))]
}
