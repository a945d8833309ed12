package redis

var Slot = slot

// Hears says whether the subscription of a key is confirmed, on whichever server
// has it.
func (b *Backend) Hears(key string) bool {
	if b.ordered {
		return b.Listening(key)
	}
	h, err := b.hubFor(key)
	if err != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[wakeChannel(key)]
	return t != nil && t.live
}
