package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

// storm is a backend behind a link that delays, loses requests and loses
// replies. It stays within the contract: it returns when ctx ends, and what it
// has not applied by then it never does.
type storm struct {
	backend.Backend

	mu  sync.Mutex
	rng *rand.Rand
}

func (s *storm) float() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.Float64()
}

// travel takes a while, now and then as long as a term, and may end in failure.
func (s *storm) travel(ctx context.Context) error {
	d := time.Duration(s.float() * float64(20*ms))
	if s.float() < 0.1 {
		d *= 50
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.float() < 0.2 {
		return errLink
	}
	return nil
}

func (s *storm) send(ctx context.Context, apply func() error) error {
	if err := s.travel(ctx); err != nil {
		return err
	}
	if err := apply(); err != nil {
		return err
	}
	return s.travel(ctx)
}

func (s *storm) Acquire(ctx context.Context, want backend.Lease) (got backend.Lease, err error) {
	err = s.send(ctx, func() error {
		got, err = s.Backend.Acquire(context.Background(), want)
		return err
	})
	return got, err
}

func (s *storm) Renew(ctx context.Context, held backend.Lease) error {
	return s.send(ctx, func() error { return s.Backend.Renew(context.Background(), held) })
}

func (s *storm) Release(ctx context.Context, held backend.Lease) error {
	return s.send(ctx, func() error { return s.Backend.Release(context.Background(), held) })
}

// lining is a storm that offers Wait.
type lining struct{ *storm }

func (l lining) Wait(ctx context.Context, want backend.Lease) (got backend.Lease, err error) {
	err = l.send(ctx, func() error {
		got, err = l.Backend.(backend.Waiter).Wait(ctx, want)
		return err
	})
	return got, err
}

// witness checks every hold against all others.
type witness struct {
	t *testing.T

	mu    sync.Mutex
	last  backend.Token
	holds map[*mutex.Hold]bool // told, and not yet unlocked
	count int
}

func (w *witness) told(h *mutex.Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	for other := range w.holds {
		if other.Until().After(time.Now()) {
			w.t.Errorf("two hold: tokens %v and %v", other.Token(), h.Token())
		}
	}
	if h.Token() <= w.last {
		w.t.Errorf("token %v after %v", h.Token(), w.last)
	}
	w.last, w.holds[h] = h.Token(), true
}

func (w *witness) unlocked(h *mutex.Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.holds, h)
}

// Laws 1, 5, 8, 10 and 14 over a bad network, with waits, cancels, unlocks that
// come too late, and Close in the middle of it.
func TestHoldsExcludeEachOtherInAStorm(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := memory.New(nil)
				s := &storm{Backend: b, rng: rand.New(rand.NewPCG(seed, 0))}
				var link backend.Backend = s
				if seed%2 == 1 {
					link = lining{s}
				}
				w := &witness{t: t, holds: make(map[*mutex.Hold]bool)}
				var wg sync.WaitGroup
				for i := range 4 {
					m := newMutex(t, link, &mutex.Options{TTL: time.Second})
					for range 3 {
						wg.Go(func() { contend(t, w, s, m) })
					}
					wg.Go(func() {
						time.Sleep(time.Duration(20+5*i) * time.Second)
						if err := m.Session().Close(t.Context()); errors.Is(err, context.Canceled) {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if w.count < 3 { // some dozens, but a storm may be worse than usual
					t.Errorf("%d holds in half a minute", w.count)
				}
				time.Sleep(2 * time.Second) // an unlock that failed leaves its key for a term
				synctest.Wait()
				free(t, b)
			})
		})
	}
}

// contend locks and unlocks until the session is closed.
func contend(t *testing.T, w *witness, s *storm, m *mutex.Leased) {
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(s.float()*float64(3*time.Second)))
		h, err := m.Hold(ctx)
		if err == nil {
			w.told(h)
			work := time.Duration(s.float() * float64(400*ms))
			if s.float() < 0.3 {
				work *= 10
			}
			select {
			case <-time.After(work):
			case <-h.Lost():
			}
			if h.Err() == nil && !time.Now().Before(h.Until()) {
				t.Error("not lost, and not valid")
			}
			w.unlocked(h) // the critical section ends before Unlock
			h.Unlock(ctx)
		}
		cancel()
		if errors.Is(err, mutex.ErrClosed) {
			return
		}
	}
}
