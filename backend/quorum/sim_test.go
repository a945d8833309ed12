package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

// server is a simulated node with the semantics of a Redis one: a key with a
// term, a counter of the last token owned, and a clock of its own.
type server struct {
	mu      sync.Mutex
	owner   string
	ends    time.Time
	counter backend.Token
	clocked bool          // new grants are floored by the lease's Start
	ahead   time.Duration // of this server's clock
	dead    map[string]bool
}

func (s *server) now() time.Time { return time.Now().Add(s.ahead) }

func (s *server) holder() string {
	if s.owner != "" && !s.now().Before(s.ends) {
		s.owner = ""
	}
	return s.owner
}

func (s *server) Acquire(_ context.Context, want backend.Lease) (backend.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch h := s.holder(); {
	case s.dead[want.Owner]:
		return backend.Lease{}, &backend.Error{Op: "acquire", Key: want.Key, Err: backend.ErrHeld}
	case h == want.Owner:
		s.counter = max(s.counter, want.Token)
	case h != "":
		return backend.Lease{}, &backend.Error{Op: "acquire", Key: want.Key, Err: backend.ErrHeld}
	default:
		floor := want.Token
		if s.clocked {
			floor = max(floor, backend.Token(want.Start.UnixMicro()))
		}
		s.counter = max(s.counter+1, floor)
	}
	if ends := s.now().Add(want.TTL); s.owner != want.Owner || ends.After(s.ends) {
		s.owner, s.ends = want.Owner, ends
	}
	want.Token = s.counter
	return want, nil
}

func (s *server) Renew(_ context.Context, held backend.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder() != held.Owner {
		return &backend.Error{Op: "renew", Key: held.Key, Err: backend.ErrLost}
	}
	s.ends, s.counter = s.now().Add(held.TTL), max(s.counter, held.Token)
	return nil
}

func (s *server) Release(_ context.Context, held backend.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holder()
	if held.Token == 0 {
		if s.dead == nil {
			s.dead = make(map[string]bool)
		}
		s.dead[held.Owner] = true
	}
	switch {
	case h == held.Owner:
		s.owner = ""
	case held.Token != 0 && (h != "" || held.Ended(time.Now())):
		return &backend.Error{Op: "release", Key: held.Key, Err: backend.ErrLost}
	}
	return nil
}

// wipe is a restart without the data.
func (s *server) wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner, s.counter, s.dead = "", 0, nil
}

func (s *server) held() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder()
}

// link is one client's way to one server.
type link struct {
	to   backend.Backend
	fate func(op string, l backend.Lease) fate
}

type fate struct {
	there, back time.Duration
	lost        bool // the request never arrives
	mute        bool // the reply never does
}

func (k *link) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	return k.carry(ctx, "acquire", want, func() (backend.Lease, error) { return k.to.Acquire(ctx, want) })
}

func (k *link) Renew(ctx context.Context, held backend.Lease) error {
	_, err := k.carry(ctx, "renew", held, func() (backend.Lease, error) { return held, k.to.Renew(ctx, held) })
	return err
}

func (k *link) Release(ctx context.Context, held backend.Lease) error {
	_, err := k.carry(ctx, "release", held, func() (backend.Lease, error) { return held, k.to.Release(ctx, held) })
	return err
}

var errCut = errors.New("connection cut")

// carry delivers one message, late or not at all. The request goes on when ctx
// has ended, as it does on a real network.
func (k *link) carry(ctx context.Context, op string, l backend.Lease, do func() (backend.Lease, error)) (backend.Lease, error) {
	var f fate
	if k.fate != nil {
		f = k.fate(op, l)
	}
	type answer struct {
		lease backend.Lease
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		time.Sleep(f.there)
		if f.lost {
			return
		}
		got, err := do()
		time.Sleep(f.back)
		if !f.mute {
			answers <- answer{got, err}
		}
	}()
	select {
	case a := <-answers:
		return a.lease, a.err
	case <-ctx.Done():
		return backend.Lease{}, fmt.Errorf("%w: %w", errCut, ctx.Err())
	}
}

// cluster is some servers with a quorum for each client that wants one.
type cluster []*server

func newCluster(counters ...backend.Token) cluster {
	var c cluster
	for _, n := range counters {
		c = append(c, &server{counter: n})
	}
	return c
}

// client is a process of its own; route says what befalls its messages.
func (c cluster) client(t testing.TB, o *quorum.Options, route func(node int, op string, l backend.Lease) fate) *quorum.Backend {
	t.Helper()
	var nodes []backend.Backend
	for i, s := range c {
		k := &link{to: s}
		if route != nil {
			k.fate = func(op string, l backend.Lease) fate { return route(i, op, l) }
		}
		nodes = append(nodes, k)
	}
	q, err := quorum.New(nodes, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return q
}

func (c cluster) keys() int {
	n := 0
	for _, s := range c {
		if s.held() != "" {
			n++
		}
	}
	return n
}

// only is a route on which all nodes but these are unreachable.
func only(nodes ...int) func(int, string, backend.Lease) fate {
	return func(node int, _ string, _ backend.Lease) fate {
		for _, n := range nodes {
			if n == node {
				return fate{there: time.Millisecond}
			}
		}
		return fate{lost: true}
	}
}

func lease(owner string) backend.Lease {
	return backend.Lease{Key: "k", Owner: owner, TTL: 8 * time.Second, Start: time.Now()}
}

func (c cluster) owners() []string {
	var all []string
	for _, s := range c {
		all = append(all, s.held())
	}
	return all
}
