package mutex

import (
	"crypto/rand"
	"encoding/base64"
	"sync"
)

// ownerSize is how many random bytes an owner is made of: it can't be guessed
// and never comes twice.
const ownerSize = 20

// owners draws an owner for each attempt. The system is asked for many at once.
type owners struct {
	mu    sync.Mutex
	bytes [64 * ownerSize]byte
	left  int
}

func (o *owners) next() string {
	var text [(ownerSize*8 + 5) / 6]byte
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left == 0 {
		rand.Read(o.bytes[:]) // never fails: it ends the process instead
		o.left = len(o.bytes)
	}
	drawn := o.bytes[o.left-ownerSize : o.left]
	base64.RawURLEncoding.Encode(text[:], drawn)
	clear(drawn)
	o.left -= ownerSize
	return string(text[:])
}
