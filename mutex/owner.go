package mutex

import (
	"crypto/rand"
	"encoding/base64"
)

// newOwner draws the owner of one attempt: 20 random bytes, so that it can't be
// guessed and never comes twice.
func newOwner() string {
	var b [20]byte
	rand.Read(b[:]) // never fails: it ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}
