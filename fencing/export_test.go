package fencing

import "github.com/distmutex/distmutex/backend"

// Remembered counts the holds whose tokens a layer of Middleware remembers.
func Remembered(b backend.Backend) int {
	var l *layer
	switch b := b.(type) {
	case *layer:
		l = b
	case *waitingLayer:
		l = b.layer
	}
	l.holds.mu.Lock()
	defer l.holds.mu.Unlock()
	return len(l.holds.m)
}
