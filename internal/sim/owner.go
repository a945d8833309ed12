package sim

import "fmt"

// owner is a lease's owner by a name that does not depend on its random bytes: the
// nth one that a client was seen to use for a key.
type owner struct{ client, key, n int }

// none is no owner; real ones begin with 1.
var none owner

func (o owner) String() string {
	return fmt.Sprintf("%c%d.%d", 'A'+rune(o.client), o.key, o.n)
}

// owner is the name of a lease's owner. Two leases with the same bytes have the
// same, whoever's they are.
func (w *world) owner(client, key int, bytes string) owner {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.owners[bytes]
	if !ok {
		w.drawn[client][key]++
		o = owner{client, key, w.drawn[client][key]}
		w.owners[bytes] = o
	}
	return o
}
