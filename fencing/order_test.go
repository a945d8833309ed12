package fencing_test

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
	"github.com/distmutex/distmutex/fencing"
)

// Processes contend over slow links for a key whose terms are short, draw from a
// Source that is slower still at times, stall, lose leases, repeat and raise.
// Whoever was told of a token has it in the order in which the key was had, and
// the same run without the look at the clock shows that it matters.
func TestTokensRiseInTheOrderOfHolds(t *testing.T) {
	const seeds = 300
	run := func(t *testing.T, blind bool) (told, unordered int) {
		for seed := range uint64(seeds) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{rng: rand.New(rand.NewPCG(seed, 7)), ranks: make(map[string]fencing.Token), blind: blind}
				w.run(t)
				told += len(w.told)
				if err := w.twice(); err != nil && !blind {
					t.Errorf("seed %d: %v", seed, err)
				}
				if err := w.disorder(); err != nil {
					unordered++
					if !blind {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			})
		}
		return told, unordered
	}
	if told, _ := run(t, false); told < 20*seeds {
		t.Errorf("%d grants in %d runs: too few to show anything", told, seeds)
	}
	t.Run("a layer that does not look at the clock is found out", func(t *testing.T) {
		_, unordered := run(t, true)
		t.Logf("found in %d runs of %d", unordered, seeds)
		if unordered < seeds/10 {
			t.Errorf("found in %d runs of %d", unordered, seeds)
		}
	})
}

// world is one run. It stands between the layers and one store in memory, and
// writes down in which order that granted the key: the ranks of the holds.
type world struct {
	store *memory.Backend
	draws fencing.Counter
	blind bool // grants look as if they never ended

	mu    sync.Mutex
	rng   *rand.Rand
	ranks map[string]fencing.Token // by owner
	told  []grant
}

type grant struct {
	rank, token fencing.Token
	asked, told time.Time
}

func (g grant) String() string { return fmt.Sprintf("hold %d with token %d", g.rank, g.token) }

func (w *world) n(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// lag is seldom long: longer than a term, then.
func (w *world) lag() {
	d := time.Duration(w.n(2000)) * time.Microsecond
	if w.n(6) == 0 {
		d *= 30
	}
	time.Sleep(d)
}

func (w *world) Next(ctx context.Context, key string, floor fencing.Token) (fencing.Token, error) {
	w.lag()
	defer w.lag()
	return w.draws.Next(context.WithoutCancel(ctx), key, floor)
}

func (w *world) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	w.lag()
	defer w.lag()
	got, err := w.store.Acquire(ctx, want)
	if err == nil {
		w.mu.Lock()
		w.ranks[want.Owner] = got.Token
		w.mu.Unlock()
	}
	if w.blind {
		got.TTL += time.Hour
	}
	got.Token = 0
	return got, err
}

func (w *world) Renew(ctx context.Context, held backend.Lease) error {
	w.lag()
	defer w.lag()
	return w.store.Renew(ctx, held)
}

func (w *world) Release(ctx context.Context, held backend.Lease) error {
	w.lag()
	return w.store.Release(ctx, held)
}

func (w *world) run(t *testing.T) {
	w.store = memory.New(nil)
	var processes sync.WaitGroup
	for p := range 4 {
		b := fencing.Middleware(w)(w)
		processes.Go(func() {
			for n := range 40 {
				w.attempt(t, b, fmt.Sprint(p, "/", n))
			}
			time.Sleep(time.Second) // for draws that were left behind
			if n := fencing.Remembered(b); n != 0 && !w.blind {
				t.Errorf("%d tokens are remembered at the end", n)
			}
		})
	}
	processes.Wait()
	time.Sleep(time.Second)
}

// attempt is one owner's life.
func (w *world) attempt(t *testing.T, b backend.Backend, owner string) {
	want := backend.Lease{Key: "k", Owner: owner, TTL: time.Duration(20+w.n(20)) * time.Millisecond}
	if w.n(3) > 0 { // else each call counts from its own beginning
		want.Start = time.Now()
	}
	var last fencing.Token
	var until time.Time // what was told lasts to here
	for range 1 + w.n(5) {
		asked := time.Now()
		got, err := w.ask(b, want)
		if errors.Is(err, backend.ErrHeld) {
			return
		}
		now := time.Now()
		if err == nil {
			w.note(owner, got.Token, asked)
			if !w.blind && now.Before(until) && got.Token != max(last, want.Token) {
				t.Errorf("%s: token %d of a hold with %d that asked for %d", owner, got.Token, last, want.Token)
			}
			last, until = got.Token, later(until, got.Until())
			want.Token = last + fencing.Token(w.n(3))
		}
		if w.n(2) == 0 {
			w.lag()
		}
		if w.n(2) > 0 || now.After(until) {
			continue
		}
		held := want
		held.Token, held.Start = last, time.Now()
		if b.Renew(t.Context(), held) == nil {
			until = later(until, held.Until())
			if !want.Start.IsZero() {
				want.Start = held.Start
			}
		}
	}
	if w.n(3) > 0 {
		_ = b.Release(t.Context(), want) // ErrLost, if it took too long
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *world) ask(b backend.Backend, want backend.Lease) (backend.Lease, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(5+w.n(200))*time.Millisecond)
	defer cancel()
	return b.Acquire(ctx, want)
}

func (w *world) note(owner string, token fencing.Token, asked time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, grant{w.ranks[owner], token, asked, time.Now()})
}

// twice finds tokens that two holds share, and those that do not rise from a
// grant to one that was asked for later.
func (w *world) twice() error {
	for _, a := range w.told {
		for _, b := range w.told {
			if a.rank != b.rank && (a.token == b.token || a.told.Before(b.asked) && a.token > b.token) {
				return fmt.Errorf("%v, and %v", a, b)
			}
		}
	}
	return nil
}

// disorder finds tokens that do not rise from hold to hold.
func (w *world) disorder() error {
	for _, a := range w.told {
		for _, b := range w.told {
			if a.rank < b.rank && a.token > b.token {
				return fmt.Errorf("%v came before %v", a, b)
			}
		}
	}
	return nil
}
