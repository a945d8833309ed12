package quorum

// Remembered is how much a quorum keeps of keys and owners.
func (q *Backend) Remembered() int {
	q.lanes.mu.Lock()
	n := len(q.lanes.byKey)
	q.lanes.mu.Unlock()
	q.grants.mu.Lock()
	n += len(q.grants.byOwner)
	q.grants.mu.Unlock()
	q.places.mu.Lock()
	n += len(q.places.byOwner)
	q.places.mu.Unlock()
	for _, node := range q.nodes {
		node.mu.Lock()
		n += len(node.doubt) + len(node.owed.leases) + len(node.owed.keys)
		node.mu.Unlock()
	}
	return n
}
