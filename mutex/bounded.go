package mutex

import "sync"

// maxCalls bounds the renewals, and the releases, that one session makes by itself
// at a time. It is far more than a healthy server needs, and keeps a dead one from
// collecting a goroutine for each of ten thousand holds.
const maxCalls = 256

// bounded has work done, maxCalls pieces of it at a time, in the order in which
// it came. What waits has no goroutine.
type bounded[T any] struct {
	mu      sync.Mutex
	active  int
	waiting []T
}

// serve does work and what has come meanwhile, unless as many do so already as
// may: then they will.
func (b *bounded[T]) serve(work T, do func(T)) {
	for ok := b.enter(work); ok; work, ok = b.next() {
		do(work)
	}
}

func (b *bounded[T]) enter(work T) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.active == maxCalls {
		b.waiting = append(b.waiting, work)
		return false
	}
	b.active++
	return true
}

func (b *bounded[T]) next() (work T, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.active--
		b.waiting = nil
		return work, false
	}
	work, b.waiting[0] = b.waiting[0], work
	b.waiting = b.waiting[1:]
	return work, true
}
