package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/retry"
)

// client is a process: sessions, one after the other, over one quorum.
type client struct {
	w    *world
	id   int
	plan *ClientPlan

	nodes  *quorum.Backend
	layers backend.Backend

	mu      sync.Mutex
	session *mutex.Session
	naps    []nap
}

func newClient(w *world, id int) (*client, error) {
	c := &client{w: w, id: id, plan: &w.plan.Clients[id]}
	var members []backend.Backend
	for _, n := range w.nodes {
		var b backend.Backend = newDriver(c, n)
		if w.plan.Identify {
			b = identified{b.(*driver)}
		}
		if w.plan.Waiters {
			b = waiter{b}
		}
		members = append(members, b)
	}
	var err error
	if c.nodes, err = quorum.New(members, &quorum.Options{NodeTimeout: w.plan.NodeTimeout, OnNode: c.onNode}); err != nil {
		return nil, err
	}
	layers := []backend.Middleware{func(b backend.Backend) backend.Backend { return newTap(c, b) }}
	if c.plan.Retry {
		layers = append(layers, retry.Middleware(c.pace), c.moments)
	}
	if w.plan.Source {
		layers = append(layers, fencing.Middleware(source{c}), c.moments)
	}
	c.layers = backend.Wrap(c.nodes, layers...)
	return c, c.open()
}

func (c *client) onNode(s backend.NodeState) {
	text := s.Name + " is in use again"
	if s.Aside {
		text = s.Name + " is set aside"
	}
	c.w.log.event("client", c.id, text)
}

// open begins a session.
func (c *client) open() error {
	p := c.w.plan
	s, err := mutex.NewSession(c.layers, &mutex.Options{
		TTL: p.TTL, Wait: c.pace,
		MinHold: c.plan.MinHold, MaxHold: c.maxHold(), RenewEvery: c.plan.RenewEvery,
		HandOver: c.plan.HandOver, Linger: c.plan.Linger,
	})
	if err != nil {
		return err
	}
	c.meter(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
	return nil
}

// maxHold bounds each hold, so that a run has an end.
func (c *client) maxHold() time.Duration {
	if c.plan.MaxHold > 0 {
		return c.plan.MaxHold
	}
	return 4 * c.w.plan.TTL
}

func (c *client) now() *mutex.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// pace is the client's retry.Policy.
func (c *client) pace() backoff.BackOff {
	return &pace{rolls: rollsOf(c.w.plan.Seed, 4, c.id, int(c.w.now())), most: 5 * ms}
}

// pace waits a random time that grows.
type pace struct {
	rolls rolls
	most  time.Duration
}

func (p *pace) Reset() {}

func (p *pace) NextBackOff() time.Duration {
	p.most = min(2*p.most, 80*ms)
	return ms + p.rolls.below(p.most)
}

// rest is where a client that is stopped stands until it goes on. The moment that
// it takes then, and in any case, keeps apart what happens in one instant.
func (c *client) rest(moment time.Duration) {
	for now := c.w.now(); ; now = c.w.now() {
		wake := c.w.stopped(c.id, now)
		if wake <= now {
			break
		}
		time.Sleep(wake - now + moment)
	}
	time.Sleep(moment)
}

// point is a rest with a moment drawn from where it is.
func (c *client) point(ids ...int) {
	r := rollsOf(c.w.plan.Seed, append([]int{5, c.id}, ids...)...)
	c.rest(1 + r.below(200*time.Microsecond))
}

// keyName and keyOf are a lock's name and number.
func keyName(key int) string { return fmt.Sprint("lock", key) }

func keyOf(name string) int { return int(name[len(name)-1] - '0') }

// owner is the name of l's owner.
func (c *client) owner(l backend.Lease) owner { return c.w.owner(c.id, keyOf(l.Key), l.Owner) }

func (c *client) dead() bool { return c.w.now() >= c.w.death(c.id) }

// source is a fencing.Source somewhere on the network.
type source struct{ c *client }

func (s source) Next(ctx context.Context, key string, floor fencing.Token) (fencing.Token, error) {
	w := s.c.w
	k, nth := keyOf(key), w.draws(s.c.id)
	r := rollsOf(w.plan.Seed, 6, s.c.id, nth)
	there, back, lost := r.below(w.plan.Latency), r.below(w.plan.Latency), r.percent(s.c.plan.Loss) && w.now() < horizon
	s.c.rest(there + 1)
	if s.c.dead() || lost {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	token := w.next(k, floor)
	s.c.rest(back + 1)
	return token, ctx.Err()
}
