package memory

// Keys counts the keys that b has anything of.
func (b *Backend) Keys() int {
	n := 0
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		n += len(s.holds)
		s.mu.Unlock()
	}
	return n
}
