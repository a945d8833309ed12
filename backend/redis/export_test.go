package redis

import (
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Lanes is how many owners have a lane.
func (b *Backend) Lanes() int {
	b.lanes.mu.Lock()
	defer b.lanes.mu.Unlock()
	return len(b.lanes.m)
}

// Listening says whether the subscription of a key is confirmed, and that its
// waiter is about to stand in line, if there is one.
func (b *Backend) Listening(key string) bool {
	channel := wakeChannel(key)
	if b.ordered {
		channel = b.hub.inbox
	}
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	t := b.hub.topics[channel]
	return t != nil && t.live && (!b.ordered || b.places.any(key))
}

func (p *places) any(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.m {
		if id.key == key {
			return true
		}
	}
	return false
}

// What tests look for on a server.
var (
	CounterKey  = counterKey
	TombsKey    = tombsKey
	WakeChannel = wakeChannel
	LineKey     = lineKey
	QueueKey    = queueKey
	TurnKey     = turnKey
	ClientFor   = clientFor
)

// SetBeat makes the hub look after itself more often. Before the first Wait only.
func (b *Backend) SetBeat(d time.Duration) { b.hub.beat = d }

// Given reads a message of an inbox for its waiter 1, and says what it makes of it.
func Given(message string, want backend.Lease, sent, read time.Time) (backend.Lease, bool) {
	w := &waiter{hub: new(hub), id: 1, woken: make(chan struct{}, 1)}
	t := &topic{waiters: map[uint64]*waiter{1: w}}
	t.pass(message)
	return w.taken().lease(want, sent, read)
}

// StandInQueues makes b a node of a quorum as far as queues go. Before its first
// call only.
func (b *Backend) StandInQueues() { b.ordered, b.queues = false, true }
