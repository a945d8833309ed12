package mutex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/distmutex/distmutex/backend"
)

// Session is what one process holds through one backend. Its methods may be
// called at the same time.
type Session struct {
	b      backend.Backend
	waiter backend.Waiter // nil if the backend has none
	obs    Observer       // nil if the backend has none
	o      Options
	meter  *sleepMeter
	agenda agenda
	owners owners

	rushing   [128]rush
	renewals  bounded[*Hold]
	farewells bounded[farewell]

	closing context.Context // ends when Close is called: waiters go home
	close   context.CancelFunc
	bg      context.Context // ends when Close can wait no longer
	stop    context.CancelFunc

	mu     sync.Mutex
	gates  map[string]*gate
	spare  *gate // the last one not needed any more
	closed bool
	work   int           // attempts and releases under way, for which Close waits
	idle   chan struct{} // made by Close, closed when work is none
}

// NewSession makes a session of b. Bad options are a *backend.InvalidError.
func NewSession(b backend.Backend, o *Options) (*Session, error) {
	if isNil(b) {
		return nil, invalid("Backend", "is nil")
	}
	full, err := o.complete()
	if err != nil {
		return nil, err
	}
	s := &Session{b: b, o: full, meter: newSleepMeter(), gates: make(map[string]*gate)}
	s.waiter, _ = backend.As[backend.Waiter](b)
	s.obs, _ = backend.As[Observer](b)
	s.closing, s.close = context.WithCancel(context.Background())
	s.bg, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Mutex returns the mutex of key. It is cheap, and all mutexes of one key in
// one session are the same mutex. What is wrong with a key is Lock's error.
func (s *Session) Mutex(key string) *Leased { return &Leased{s: s, key: key} }

// Close ends the session. Whoever waits for a lock gets ErrClosed; every hold
// is lost, with the reason Closed, and released. Close waits for that, and for
// the releases still to be done for earlier calls, until the later of ctx's end
// and one second.
//
// It returns nil if nothing was left undone, and the unknown outcomes
// otherwise: those keys stay locked until their term ends. So do, by design,
// keys that Options.MinHold keeps. It can be called again.
func (s *Session) Close(ctx context.Context) error {
	bound, cancel := patience(ctx, time.Now(), time.Time{})
	defer cancel()

	s.mu.Lock()
	s.closed = true
	var held []*Hold
	for _, g := range s.gates {
		if h := cmp.Or(g.holder, s.unkeep(g)); h != nil {
			held = append(held, h)
		}
	}
	s.mu.Unlock()
	s.close()

	err := errors.Join(s.closeAll(ctx, bound, held), s.wait(ctx, bound))
	s.stop()
	return err
}

// closeAll closes the holds, many at a time.
func (s *Session) closeAll(ctx, bound context.Context, held []*Hold) error {
	errs := make([]error, len(held))
	var g errgroup.Group
	g.SetLimit(maxCalls)
	for i, h := range held {
		g.Go(func() error {
			errs[i] = h.close(ctx, bound)
			return nil
		})
	}
	g.Wait()
	return errors.Join(errs...)
}

// wait returns when no work is under way, or bound ends.
func (s *Session) wait(ctx, bound context.Context) error {
	s.mu.Lock()
	work := s.work
	if work > 0 && s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	if work == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-bound.Done():
		return fmt.Errorf("close session: %d calls under way: %w", work, ctx.Err())
	}
}

// begin says that work begins, unless the session is closed; end, that it ended.
func (s *Session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work++
	return true
}

func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work--; s.work == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}
