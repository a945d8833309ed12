package conformance_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/faultlink"
)

// store is a server of leases that crashes, stands still, and has a clock of its
// own. It is sound but for what defect makes of it.
type store struct {
	mu     sync.Mutex
	rows   map[string]entry
	skew   time.Duration
	down   bool
	asleep chan struct{} // closed when it goes on; nil: it does not stand still
	defect defect
}

type entry struct {
	owner string
	token backend.Token
	began time.Time // by the store's clock
	ends  time.Time
}

// defect is how a store, or a client of it, is not as it should be.
type defect struct {
	ownIsAnothers   bool // an owner's own value counts as another's
	freeIsLost      bool // a Release of a free key is a loss
	byName          bool // renews and deletes by name
	endsFromBegin   bool // a term ends when the clock is off by more than it
	sleepsForever   bool // terms that end while it stands still do not
	crashForgets    bool
	crashResets     bool // tokens
	crashBringsBack bool // what was released
	countsFromOne   bool // tokens
	clockTokens     bool // tokens are the clock
	recreates       bool
	minority        bool // a sick minority stops it
	healBringsBack  bool

	client func(*conn) backend.Backend
}

var errDown = errors.New("connection refused")

func (s *store) now() time.Time { return time.Now().Add(s.skew) }

// change makes one change to a row. A store that is down or asleep makes none.
func (s *store) change(ctx context.Context, op string, l backend.Lease, verb func(e *entry, now time.Time) error) error {
	if err := l.Validate(); err != nil {
		return err
	}
	for s.wait(ctx) {
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.now(), ctx.Err()
	if s.down && err == nil {
		err = errDown
	}
	e := s.rows[l.Key]
	if !now.Before(e.ends) || s.defect.endsFromBegin && e.began.Sub(now).Abs() > e.ends.Sub(e.began) {
		e.owner = ""
	}
	if err == nil {
		err = verb(&e, now)
	}
	if err != nil {
		return &backend.Error{Op: op, Key: l.Key, Err: err}
	}
	s.rows[l.Key] = e
	return nil
}

// wait says true when it has waited for a store that stood still.
func (s *store) wait(ctx context.Context) bool {
	s.mu.Lock()
	asleep := s.asleep
	s.mu.Unlock()
	if asleep == nil || ctx.Err() != nil {
		return false
	}
	select {
	case <-asleep:
	case <-ctx.Done():
	}
	return true
}

func (s *store) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	err := s.change(ctx, "acquire", want, func(e *entry, now time.Time) error {
		switch {
		case e.owner == "":
			next := max(e.token+1, backend.Token(now.UnixMicro()))
			if s.defect.countsFromOne {
				next = e.token + 1
			}
			if s.defect.clockTokens {
				next = backend.Token(now.UnixMicro())
			}
			*e = entry{want.Owner, next, now, now}
		case e.owner != want.Owner || s.defect.ownIsAnothers:
			return backend.ErrHeld
		}
		e.token = max(e.token, want.Token)
		if end := now.Add(want.TTL); end.After(e.ends) {
			e.ends = end
		}
		want.Token = e.token
		return nil
	})
	return want, err
}

func (s *store) Renew(ctx context.Context, held backend.Lease) error {
	return s.change(ctx, "renew", held, func(e *entry, now time.Time) error {
		switch {
		case s.defect.recreates && e.owner == "":
			e.owner = held.Owner
		case e.owner != held.Owner && !s.defect.byName:
			return backend.ErrLost
		}
		e.token, e.ends = max(e.token, held.Token), now.Add(held.TTL)
		if s.defect.byName {
			e.owner = held.Owner
		}
		return nil
	})
}

func (s *store) Release(ctx context.Context, held backend.Lease) error {
	return s.change(ctx, "release", held, func(e *entry, now time.Time) error {
		switch {
		case e.owner == held.Owner, s.defect.byName:
			e.owner = ""
		case held.Token != 0 && (e.owner != "" || held.Ended(now.Add(-s.skew)) || s.defect.freeIsLost):
			return backend.ErrLost
		}
		return nil
	})
}

// crash, sleep and the like are what the harness does.

func (s *store) crash() (restart func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.down = false
		for key, e := range s.rows {
			if s.defect.crashForgets {
				e.owner = ""
			}
			if s.defect.crashResets {
				e.token = 0
			}
			s.rows[key] = e
		}
		if s.defect.crashBringsBack {
			s.bringBack()
		}
	}
}

// bringBack gives every lease that was ever granted last its owner again.
func (s *store) bringBack() {
	for key, e := range s.rows {
		e.owner = "a ghost"
		s.rows[key] = e
	}
}

func (s *store) sleep() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asleep := make(chan struct{})
	s.asleep = asleep
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asleep = nil
		if s.defect.sleepsForever {
			for key, e := range s.rows {
				e.ends = e.ends.Add(backend.MaxTTL)
				s.rows[key] = e
			}
		}
		close(asleep)
	}
}

func (s *store) forget() {
	time.Sleep(time.Millisecond) // by which the floor of its tokens moves
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.rows)
}

func (s *store) sicken() (heal func()) {
	if s.defect.minority {
		return s.sleep()
	}
	before := maps.Clone(s.rows)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.defect.healBringsBack {
			maps.Copy(s.rows, before)
		}
	}
}

// conn is a client of a store.
type conn struct {
	*faultlink.Link
	store *store
}

func connect(t testing.TB, s *store) backend.Backend {
	c := &conn{faultlink.New(s), s}
	if s.defect.client == nil {
		return c
	}
	b := s.defect.client(c)
	if bad, ok := b.(*client); ok && bad.close != nil {
		t.Cleanup(bad.close)
	}
	return b
}

// connOf is the conn below a defective client.
func connOf(b backend.Backend) *conn {
	c, _ := backend.As[interface{ below() *conn }](b)
	return c.below()
}

func (c *conn) below() *conn { return c }

// simulated is the harness of a store with a defect.
func simulated(d defect) conformance.Harness {
	return conformance.Harness{
		Around: synctest.Test,
		New: func(t testing.TB) backend.Backend {
			return connect(t, &store{rows: make(map[string]entry), defect: d})
		},
		Peer: func(t testing.TB, b backend.Backend) backend.Backend { return connect(t, connOf(b).store) },
		Faults: conformance.Faults{
			LoseReply: func(_ testing.TB, b backend.Backend, l backend.Lease) { connOf(b).LoseReply(l.Owner) },
			Hold:      func(_ testing.TB, b backend.Backend) func() { return connOf(b).Hold() },
			Pause:     func(_ testing.TB, b backend.Backend) func() { return connOf(b).store.sleep() },
			Minority:  func(_ testing.TB, b backend.Backend) func() { return connOf(b).store.sicken() },
			Crash:     func(_ testing.TB, b backend.Backend) func() { return connOf(b).store.crash() },
			Forget:    func(_ testing.TB, b backend.Backend) { connOf(b).store.forget() },
			MoveClock: func(_ testing.TB, b backend.Backend, by time.Duration) { connOf(b).store.move(by) },
		},
	}
}

func (s *store) move(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew += by
}

func TestSimulatedStore(t *testing.T) {
	conformance.Run(t, simulated(defect{}))
}
