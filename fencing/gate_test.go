package fencing_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
)

func TestContextCarriesToken(t *testing.T) {
	none := t.Context()
	with := fencing.NewContext(none, 7)
	for _, c := range []struct {
		name string
		ctx  context.Context
		want fencing.Token
		ok   bool
	}{
		{"none", none, 0, false},
		{"one", with, 7, true},
		{"inner one", fencing.NewContext(with, 8), 8, true},
		{"inner zero", fencing.NewContext(with, 0), 0, false},
	} {
		if got, ok := fencing.FromContext(c.ctx); got != c.want || ok != c.ok {
			t.Errorf("%s: FromContext = %d, %v; want %d, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// Case 47.
func TestGateRefusesStaleTokens(t *testing.T) {
	var g fencing.Gate
	for _, c := range []struct {
		token fencing.Token
		stale bool
	}{{3, false}, {3, false}, {2, true}, {10, false}, {9, true}, {3, true}, {10, false}, {11, false}} {
		err := g.Admit(c.token)
		if got := errors.Is(err, fencing.ErrStale); got != c.stale || (err != nil) != c.stale {
			t.Errorf("Admit(%d) = %v; want stale %v", c.token, err, c.stale)
		}
	}
	err := g.Admit(4)
	if err == nil || !strings.Contains(err.Error(), "4") || !strings.Contains(err.Error(), "11") {
		t.Errorf("Admit(4) = %v; want both tokens in the error", err)
	}
}

func TestGateRefusesTheUnfenced(t *testing.T) {
	for _, token := range []fencing.Token{0, -1} {
		var g fencing.Gate
		var invalid *backend.InvalidError
		if err := g.Admit(token); !errors.As(err, &invalid) || errors.Is(err, fencing.ErrStale) {
			t.Errorf("Admit(%d) = %v; want an InvalidError", token, err)
		}
		err := g.Do(token, func() error { t.Errorf("Do(%d) wrote", token); return nil })
		if !errors.As(err, &invalid) {
			t.Errorf("Do(%d) = %v; want an InvalidError", token, err)
		}
	}
}

func TestDoWritesOnlyWhatIsNotStale(t *testing.T) {
	var g fencing.Gate
	failed := errors.New("disk full")
	if err := g.Do(5, func() error { return failed }); err != failed {
		t.Errorf("Do = %v; want the write's own error", err)
	}
	err := g.Do(4, func() error { t.Error("a stale write was made"); return nil })
	if !errors.Is(err, fencing.ErrStale) {
		t.Errorf("Do(4) after a failed write of 5 = %v; want ErrStale", err)
	}
	wrote := false
	if err := g.Do(5, func() error { wrote = true; return nil }); err != nil || !wrote {
		t.Errorf("Do(5) again = %v, wrote %v; want nil, true", err, wrote)
	}
}

func TestDoLeavesTheGateOpenAfterAPanic(t *testing.T) {
	var g fencing.Gate
	func() {
		defer func() { recover() }()
		g.Do(1, func() error { panic("write") })
	}()
	if err := g.Admit(2); err != nil {
		t.Errorf("Admit(2) = %v", err)
	}
}

// Writes run one at a time and in the order of their tokens: the race detector
// and the order of the log see any that do not.
func TestDoOrdersConcurrentWrites(t *testing.T) {
	var g fencing.Gate
	var log []fencing.Token
	var wg sync.WaitGroup
	for token := range fencing.Token(100) {
		wg.Go(func() {
			err := g.Do(token+1, func() error { log = append(log, token+1); return nil })
			if err != nil && !errors.Is(err, fencing.ErrStale) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range len(log) - 1 {
		if log[i] >= log[i+1] {
			t.Fatalf("token %d wrote after %d", log[i+1], log[i])
		}
	}
	if last := log[len(log)-1]; last != 100 {
		t.Errorf("the last write is of token %d; want 100", last)
	}
}
