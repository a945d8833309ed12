package conformance

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var exclusionChecks = []check{
	{"exclusion/one-holder", 1, "While one owner holds a key, no other owner is granted it, through whatever client it asks.", 0, oneHolder},
	{"exclusion/simultaneous", 1, "Of many who ask for a free key at the same time, at most one is granted it.", 0, simultaneous},
	{"exclusion/contention", 1, "However many contend for a key, no two holds of it overlap, and each has a larger token than the one before.", 0, contention},
	{"exclusion/abandoned", 1, "No two holds overlap, and tokens rise, when some holders never release and their leases run out under those who wait.", expiry, abandoned},
	{"exclusion/many-keys", 1, "Holders of different keys do not disturb each other, whatever goes on at the same time.", 0, manyKeys},
}

func oneHolder(t *trial) {
	held := t.acquire(t.b, t.lease(long))
	t.refused(t.b)
	t.refused(t.peer)
	t.refused(t.peer) // a refusal opens nothing
	t.renew(t.b, held)
}

func simultaneous(t *trial) {
	for range 10 {
		t.key += "'"
		grants := make(chan backend.Lease, 8)
		var wg sync.WaitGroup
		for i := range cap(grants) {
			b := []backend.Backend{t.b, t.peer}[i%2]
			wg.Go(func() {
				if got, err := t.tryAcquire(b, t.lease(long)); err == nil {
					grants <- got
				} else if !errors.Is(err, backend.ErrHeld) {
					t.Errorf("Acquire among many: %v, want a grant or ErrHeld", err)
				}
			})
		}
		wg.Wait()
		if n := len(grants); n > 1 {
			t.Fatalf("%d of %d were granted the key at the same time", n, cap(grants))
		}
	}
}

func contention(t *trial) {
	var wg sync.WaitGroup
	for i := range 6 {
		b := []backend.Backend{t.b, t.peer}[i%2]
		wg.Go(func() {
			for n := 0; n < 5 && t.ctx.Err() == nil; {
				// With a wait and without one, as callers mix.
				time.Sleep(rand.N(3 * time.Millisecond))
				got, err := t.tryAcquire(b, t.lease(long))
				switch {
				case err == nil:
					time.Sleep(rand.N(time.Millisecond))
					if err := t.tryRelease(b, got); err != nil {
						t.Errorf("Release by the holder: %v, want nil", err)
					}
					n++
				case !errors.Is(err, backend.ErrHeld):
					t.Errorf("Acquire among many: %v, want a grant or ErrHeld", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.ctx.Err() != nil {
		t.Errorf("not everybody had had the key when the time was up")
	}
	t.judge()
}

func abandoned(t *trial) {
	var wg sync.WaitGroup
	for i := range 4 {
		b := []backend.Backend{t.b, t.peer}[i%2]
		wg.Go(func() {
			for n := 0; n < 4 && t.ctx.Err() == nil; {
				time.Sleep(rand.N(3 * time.Millisecond))
				want := t.lease(t.short)
				got, err := t.tryAcquire(b, want)
				if err != nil {
					if !errors.Is(err, backend.ErrHeld) {
						t.undo(b, want) // it came too late for so short a term
					}
					continue
				}
				if n++; n%2 == 0 {
					continue // not heard of again
				}
				time.Sleep(rand.N(t.short / 4))
				_ = b.Release(t.ctx, got) // lost, if the machine stalled
			}
		})
	}
	wg.Wait()
	if t.ctx.Err() != nil {
		t.Errorf("not everybody had had the key when the time was up")
	}
	t.judge()
}

func manyKeys(t *trial) {
	var wg sync.WaitGroup
	for range 8 {
		want := t.lease(long)
		want.Key += want.Owner
		wg.Go(func() {
			for range 10 {
				want.Owner += "'"
				want.Start = time.Now()
				got, err := t.tryAcquire(t.b, want)
				time.Sleep(rand.N(time.Millisecond))
				if err == nil {
					err = t.persist(func() error { return t.b.Renew(t.ctx, got) })
				}
				if err == nil {
					err = t.tryRelease(t.b, got)
				}
				if err != nil {
					t.Errorf("a cycle on a key of one's own: %v, want nil", err)
					return
				}
			}
		})
	}
	wg.Wait()
}
