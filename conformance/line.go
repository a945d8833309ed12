package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var lineChecks = []check{
	{"line/many", 13, "Of many waiters each gets its turn: no wake-up is lost, no two hold at once, and tokens rise.", waiting, lineMany},
	{"line/hand-over", 13, "A key goes to and fro between two waiters without either being forgotten.", waiting, lineHandOver},
	{"line/cancelled-head", 13, "A waiter that gave up does not keep the key from those behind it.", waiting, lineCancelledHead},
	{"line/dead-head", 13, "A waiter that is not heard of again keeps the key from those behind it for no longer than its term.", waiting | expiry, lineDeadHead},
}

func lineMany(t *trial) { t.turns(8, 3) }

func lineHandOver(t *trial) { t.turns(2, 20) }

// turns has some waiters take turns.
func (t *trial) turns(waiters, each int) {
	var wg sync.WaitGroup
	for i := range waiters {
		b := []backend.Backend{t.b, t.peer}[i%2]
		wg.Go(func() {
			for n := range each {
				got, err := t.lock(t.ctx, b, long, 0)
				if err != nil {
					t.Errorf("a waiter had had the key %d times of %d when the time was up: %v", n, each, err)
					return
				}
				time.Sleep(time.Millisecond)
				if err := t.tryRelease(b, got); err != nil {
					t.Errorf("Release by the holder: %v, want nil", err)
				}
			}
		})
	}
	wg.Wait()
	t.judge()
}

func lineCancelledHead(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	ctx, cancel := context.WithCancel(t.ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = t.lock(ctx, t.peer, long, 0) })
	time.Sleep(50 * time.Millisecond)
	second := t.queue(t.b, long, 0)
	cancel()
	wg.Wait() // gone, and its place given up
	t.release(t.b, held)
	t.release(t.b, t.served(second, patience))
	t.free()
}

// Case 41.
func lineDeadHead(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	ctx, cancel := context.WithCancel(t.ctx)
	dead := t.lease(time.Second)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = t.waiter(t.peer).Wait(ctx, dead) })
	time.Sleep(50 * time.Millisecond)
	second := t.queue(t.b, long, 0)
	cancel() // and no Release follows, as if its process had died
	t.release(t.b, held)
	wg.Wait()
	t.release(t.b, t.served(second, dead.TTL+t.late+patience))
	t.free()
}
