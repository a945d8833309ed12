package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

const queueTerm = 10 * time.Second

// crowd is some clients of one quorum.
type crowd struct {
	t       *testing.T
	servers []*redistest.Server
	clients []*redis.Quorum
}

// crowds runs a test with three clients of five servers.
func crowds(t *testing.T, test func(c *crowd)) {
	five(t, func(t *testing.T, servers []*redistest.Server) {
		if servers[0].Flavour == redistest.Miniredis {
			t.Skip("not checked: miniredis does not say who it is, so nothing is guarded and nobody stands in a queue")
		}
		c := &crowd{t: t, servers: servers}
		for range 3 {
			c.clients = append(c.clients, quorumOf(t, redistest.Addrs(servers)))
		}
		// A client that has not heard from the servers knows no clock of theirs.
		for _, q := range c.clients {
			c.release(q, mustAcquire(t, q, lease("first", queueTerm)))
		}
		test(c)
	})
}

func (c *crowd) release(q *redis.Quorum, l backend.Lease) {
	c.t.Helper()
	if err := q.Release(c.t.Context(), l); err != nil {
		c.t.Errorf("release: %v", err)
	}
}

// each sends a command to every server.
func (c *crowd) each(args ...any) {
	c.t.Helper()
	for _, s := range c.servers {
		if err := s.Client().Do(c.t.Context(), args...).Err(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// served is what a patient caller gets.
type served struct {
	backend.Lease
	who int
	err error
}

// patient takes the key as package mutex does: a new owner after each refusal,
// the ticket kept. When ctx ends it gives its place up.
func patient(ctx context.Context, q *redis.Quorum, key string) (backend.Lease, error) {
	want := lease(key, queueTerm)
	for {
		hint, err := q.Wait(ctx, want)
		if err != nil {
			return backend.Lease{}, errors.Join(err, q.Release(context.WithoutCancel(ctx), want))
		}
		want.Ticket, want.Start = hint.Ticket, time.Now()
		got, err := q.Acquire(ctx, want)
		if err == nil {
			return got, nil
		}
		if !errors.Is(err, backend.ErrHeld) {
			return backend.Lease{}, errors.Join(err, q.Release(context.WithoutCancel(ctx), want))
		}
		next := lease(key, queueTerm)
		next.Ticket = want.Ticket
		want = next
	}
}

// queue starts a patient caller, and returns when it stands in line on all nodes.
func (c *crowd) queue(ctx context.Context, who int, to chan<- served) {
	c.t.Helper()
	before := c.inQueue("k")
	go func() {
		got, err := patient(ctx, c.clients[who%len(c.clients)], "k")
		to <- served{got, who, err}
	}()
	eventually(c.t, "it stands in the queue of every node", func() bool { return c.inQueue("k") == before+len(c.servers) })
}

// inQueue is how many stand in the queues, together.
func (c *crowd) inQueue(key string) (n int) {
	for _, s := range c.servers {
		n += int(s.Client().ZCard(context.Background(), redis.QueueKey(key)).Val())
	}
	return n
}

// kept is for how many nodes the lock is kept for somebody.
func (c *crowd) kept(key string) (n int) {
	for _, s := range c.servers {
		n += int(s.Client().Exists(context.Background(), redis.TurnKey(key)).Val())
	}
	return n
}

// leftNothing looks for what is left, which may still be on its way to a minority.
func (c *crowd) leftNothing() {
	c.t.Helper()
	eventually(c.t, "no place and no turn is left", func() bool { return c.inQueue("k") == 0 && c.kept("k") == 0 })
}

// await is the next who is served.
func (c *crowd) await(from <-chan served, within time.Duration) served {
	c.t.Helper()
	select {
	case got := <-from:
		if got.err != nil {
			c.t.Fatalf("caller %d: %v", got.who, got.err)
		}
		return got
	case <-time.After(within):
		c.t.Fatalf("nobody was served within %v", within)
	}
	return served{}
}

// Who waits for a lock of a quorum gets it in the order of coming, whichever
// client it is of, with tokens that rise, whether the holder before waited or not.
func TestQuorumIsFirstComeFirstServed(t *testing.T) {
	crowds(t, func(c *crowd) {
		last := mustAcquire(c.t, c.clients[0], lease("k", queueTerm))
		c.release(c.clients[0], last)
		holder, q := mustAcquire(c.t, c.clients[0], lease("k", queueTerm)), c.clients[0]
		got := make(chan served, 9)
		for who := range 9 {
			c.queue(c.t.Context(), who, got)
		}
		for who := range 9 {
			c.release(q, holder)
			next := c.await(got, 5*time.Second)
			if next.who != who || next.Token <= holder.Token {
				c.t.Fatalf("caller %d is served with token %d after %d, want caller %d", next.who, next.Token, holder.Token, who)
			}
			holder, q = next.Lease, c.clients[who%3]
		}
		c.release(q, holder)
		c.leftNothing()
	})
}

// The first is told at once: it does not wait for a poll.
func TestNextOfAQuorumIsTold(t *testing.T) {
	crowds(t, func(c *crowd) {
		for n := range 5 {
			holder := mustAcquire(c.t, c.clients[0], lease("k", queueTerm))
			got := make(chan served, 1)
			c.queue(c.t.Context(), 1, got)
			c.release(c.clients[0], holder)
			began := time.Now()
			next := c.await(got, 5*time.Second)
			if took := time.Since(began); took > 500*time.Millisecond {
				c.t.Errorf("round %d: the next was served after %v: it was not told", n, took)
			}
			c.release(c.clients[1], next.Lease)
			c.leftNothing()
		}
	})
}

// One who gives up leaves no place behind, wherever it stood and however far it
// had come, and those behind it move up.
func TestPlaceInTheQueueIsGivenUp(t *testing.T) {
	crowds(t, func(c *crowd) {
		holder := mustAcquire(c.t, c.clients[0], lease("k", queueTerm))
		got, gone := make(chan served, 2), make(chan served, 2)
		ctx, cancel := context.WithCancel(c.t.Context())
		defer cancel()
		c.queue(ctx, 0, gone)
		c.queue(ctx, 1, gone)
		c.queue(c.t.Context(), 2, got)
		cancel()
		for range 2 {
			if s := <-gone; !errors.Is(s.err, context.Canceled) {
				c.t.Errorf("caller %d: %v", s.who, s.err)
			}
		}
		eventually(c.t, "only one is left", func() bool { return c.inQueue("k") == len(c.servers) })
		c.release(c.clients[0], holder)
		began := time.Now()
		next := c.await(got, 5*time.Second)
		if took := time.Since(began); took > 500*time.Millisecond {
			c.t.Errorf("the next was served after %v", took)
		}
		c.release(c.clients[2], next.Lease)
		c.leftNothing()
	})
}
