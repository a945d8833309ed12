package redis

import "time"

// Lanes is how many owners have a lane.
func (b *Backend) Lanes() int {
	b.lanes.mu.Lock()
	defer b.lanes.mu.Unlock()
	return len(b.lanes.m)
}

// Listening says whether the subscription of a key is confirmed.
func (b *Backend) Listening(key string) bool {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	t := b.hub.topics[wakeChannel(key)]
	return t != nil && t.live
}

// What tests look for on a server.
var (
	CounterKey  = counterKey
	TombsKey    = tombsKey
	WakeChannel = wakeChannel
	ClientFor   = clientFor
)

// SetBeat makes the hub look after itself more often. Before the first Wait only.
func (b *Backend) SetBeat(d time.Duration) { b.hub.beat = d }
