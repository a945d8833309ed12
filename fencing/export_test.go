package fencing

import "github.com/distmutex/distmutex/backend"

func layerOf(b backend.Backend) *layer {
	if w, ok := b.(*waitingLayer); ok {
		return w.layer
	}
	return b.(*layer)
}

// Remembered counts the holds whose tokens a layer of Middleware remembers.
func Remembered(b backend.Backend) int {
	l := layerOf(b)
	l.holds.mu.Lock()
	defer l.holds.mu.Unlock()
	return len(l.holds.m)
}

// StopTimers makes a layer's timers as late as those of a machine that stalls.
func StopTimers(b backend.Backend) {
	l := layerOf(b)
	l.holds.mu.Lock()
	defer l.holds.mu.Unlock()
	for _, h := range l.holds.m {
		h.timer.Stop()
	}
}
