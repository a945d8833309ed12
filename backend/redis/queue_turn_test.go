package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// Who gives up when it is its turn leaves it to the next at once; and a Wait that
// arrives after the Release of its owner takes no place.
func TestTurnIsGivenUp(t *testing.T) {
	crowds(t, func(c *crowd) {
		holder := mustAcquire(c.t, c.clients[0], lease("k", queueTerm))
		got := make(chan served, 1)
		c.queue(c.t.Context(), 1, got)
		c.each("set", redis.TurnKey("k"), "500-me")
		c.release(c.clients[0], holder) // without a ticket: it tells nobody by name
		gone := lease("k", queueTerm)
		gone.Ticket = "1 500-me"
		began := time.Now()
		c.release(c.clients[2], gone)
		next := c.await(got, 5*time.Second)
		if took := time.Since(began); took > 500*time.Millisecond {
			c.t.Errorf("the next was served after %v", took)
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		if _, err := c.clients[0].Wait(ctx, gone); err != nil {
			c.t.Errorf("a Wait after its owner's Release: %v", err)
		}
		if n := c.inQueue("k"); n != 0 {
			c.t.Errorf("it took %d places", n)
		}
		if _, err := c.clients[0].Acquire(c.t.Context(), gone); !errors.Is(err, backend.ErrHeld) {
			c.t.Errorf("an Acquire after its owner's Release: %v", err)
		}
		c.release(c.clients[1], next.Lease)
		c.leftNothing()
	})
}

// One that died in the queue costs the others a turn, once.
func TestDeadHeadOfAQueueCostsATurn(t *testing.T) {
	crowds(t, func(c *crowd) {
		holder := mustAcquire(c.t, c.clients[0], lease("k", queueTerm))
		c.each("zadd", redis.QueueKey("k"), 1000, "1000-dead")
		got := make(chan served, 2)
		for who := range 2 {
			c.queue(c.t.Context(), who, got)
		}
		// It waited, so its release tells whose turn it is.
		holder.Ticket = "1 1-holder"
		c.release(c.clients[0], holder)
		eventually(c.t, "the lock is kept for the dead one", func() bool { return c.kept("k") == len(c.servers) })
		if _, err := c.clients[2].Acquire(c.t.Context(), lease("k", queueTerm)); !errors.Is(err, backend.ErrHeld) {
			c.t.Errorf("a newcomer: %v, want ErrHeld while the lock is kept", err)
		}
		for who := range 2 {
			began := time.Now()
			next := c.await(got, 10*time.Second)
			if took := time.Since(began); took > []time.Duration{4 * time.Second, 500 * time.Millisecond}[who] {
				c.t.Errorf("caller %d was served after %v", next.who, took)
			}
			c.release(c.clients[next.who], next.Lease)
		}
		c.leftNothing()
	})
}

// A lock that is kept for one is granted to whoever is ahead of it, so nodes that
// do not agree on who is next come to agree.
func TestEarlierTicketGoesFirst(t *testing.T) {
	crowds(t, func(c *crowd) {
		for ticket, want := range map[string]error{"1 500-a": nil, "1 1000-a": nil, "1 1000-c": backend.ErrHeld, "1 2000-a": backend.ErrHeld, "": backend.ErrHeld} {
			c.each("del", redis.QueueKey("k"))
			c.each("set", redis.TurnKey("k"), "1000-b")
			l := lease("k", queueTerm)
			l.Ticket = ticket
			if shown, ok := strings.CutPrefix(ticket, "1 "); ok {
				c.each("zadd", redis.QueueKey("k"), 5000, shown) // it stands there
			}
			got, err := c.clients[0].Acquire(c.t.Context(), l)
			if !errors.Is(err, want) {
				c.t.Errorf("ticket %q: %v, want %v", ticket, err, want)
			}
			if err == nil {
				eventually(c.t, "the turn is over", func() bool { return c.kept("k") == 0 && c.inQueue("k") == 0 })
				c.release(c.clients[0], got)
			}
		}
	})
}

// A lock that became free without a release (its term ended, or it was deleted by
// hand) is kept for the first, whoever looks; and one that looks is the first if
// nobody ahead of it stands there.
func TestWhoeverLooksTellsTheFirst(t *testing.T) {
	crowds(t, func(c *crowd) {
		for name, x := range map[string]struct {
			queue, turn, shown string
			told               bool
		}{
			"nobody else":           {"500-me", "", "500-me", true},
			"one ahead":             {"400-you", "", "500-me", false},
			"one behind":            {"600-you", "", "500-me", true},
			"kept for one ahead":    {"500-me", "400-you", "500-me", false},
			"kept for one behind":   {"500-me", "600-you", "500-me", true},
			"kept for the same one": {"600-you", "500-me", "500-me", true},
		} {
			c.each("del", redis.QueueKey("k"), redis.TurnKey("k"))
			score, _, _ := strings.Cut(x.queue, "-")
			c.each("zadd", redis.QueueKey("k"), score, x.queue)
			if x.turn != "" {
				c.each("set", redis.TurnKey("k"), x.turn)
			}
			ctx, cancel := context.WithTimeout(c.t.Context(), 300*time.Millisecond)
			want := lease("k", queueTerm)
			want.Ticket = "1 " + x.shown
			_, err := c.clients[0].Wait(ctx, want)
			cancel()
			if told := err == nil; told != x.told {
				c.t.Errorf("%s: told %v (%v), want %v", name, told, err, x.told)
			}
			first := x.shown
			if !x.told {
				first = "400-you"
			}
			kept, stand := 0, 0
			for _, s := range c.servers { // if it was told, some may not have been asked
				if s.Client().Get(c.t.Context(), redis.TurnKey("k")).Val() == first {
					kept++
				}
				if s.Client().ZScore(c.t.Context(), redis.QueueKey("k"), x.shown).Err() == nil {
					stand++
				}
			}
			if x.told && (kept == 0 || kept+stand > len(c.servers)) || !x.told && kept+stand < 2*len(c.servers) {
				c.t.Errorf("%s: %d nodes keep it for %q, and it stands in the queue of %d", name, kept, first, stand)
			}
			if err := c.clients[0].Release(c.t.Context(), want); err != nil {
				c.t.Error(err)
			}
		}
		c.each("del", redis.QueueKey("k"), redis.TurnKey("k"))
	})
}

// A ticket begins with the time, as most nodes have it, be the client's clock what
// it may; and it is kept.
func TestTicketsAreByTheClocksOfTheNodes(t *testing.T) {
	crowds(t, func(c *crowd) {
		holder := mustAcquire(c.t, c.clients[0], lease("k", queueTerm))
		ctx, cancel := context.WithTimeout(c.t.Context(), 300*time.Millisecond)
		defer cancel()
		want := lease("k", queueTerm)
		_, _ = c.clients[1].Wait(ctx, want)
		for _, s := range c.servers {
			all := s.Client().ZRangeWithScores(c.t.Context(), redis.QueueKey("k"), 0, -1).Val()
			if len(all) != 1 {
				c.t.Fatalf("%d stand in the queue of %s", len(all), s.Addr)
			}
			ticket := fmt.Sprint(all[0].Member)
			if !strings.HasPrefix(ticket, fmt.Sprintf("%.0f-", all[0].Score)) || strings.Contains(ticket, want.Owner) {
				c.t.Errorf("ticket %q stands at %v", ticket, all[0].Score)
			}
			if ago := time.Since(time.UnixMicro(int64(all[0].Score))); ago < 0 || ago > 5*time.Second {
				c.t.Errorf("it came %v ago", ago)
			}
		}
		if err := c.clients[1].Release(c.t.Context(), want); err != nil {
			c.t.Error(err)
		}
		c.release(c.clients[0], holder)
		c.leftNothing()
	})
}

// Whoever asks without a ticket is woken by any release, as the release before this
// one is; and a ticket is of no use where nothing is guarded.
func TestUnguardedQuorumHasNoQueue(t *testing.T) {
	five(t, func(t *testing.T, servers []*redistest.Server) {
		q := strangers(t, redistest.Addrs(servers), &redis.Options{Unguarded: true})
		holder := mustAcquire(t, q, lease("k", queueTerm))
		got := make(chan served, 1)
		go func() {
			l, err := patient(t.Context(), q, "k")
			got <- served{l, 0, err}
		}()
		time.Sleep(100 * time.Millisecond)
		for _, s := range servers {
			if n := s.Client().Exists(t.Context(), redis.QueueKey("k"), redis.TurnKey("k")).Val(); n != 0 {
				t.Errorf("%s has a queue", s.Addr)
			}
		}
		if err := q.Release(t.Context(), holder); err != nil {
			t.Error(err)
		}
		if s := <-got; s.err != nil {
			t.Error(s.err)
		} else if err := q.Release(t.Context(), s.Lease); err != nil {
			t.Error(err)
		}
	})
}

// One who waited tells those who stand in no queue, as clients of the release
// before, if nobody else does.
func TestQueueTellsThoseBesideIt(t *testing.T) {
	crowds(t, func(c *crowd) {
		holder := mustAcquire(c.t, c.clients[0], lease("k", queueTerm))
		holder.Ticket = "1 1-holder"
		b := unordered(c.t, c.servers[0].Client())
		woken := waiting(c.t, b, c.t.Context(), "k")
		eventually(c.t, "it listens", func() bool { return b.Listening("k") })
		began := time.Now()
		c.release(c.clients[0], holder)
		if err := <-woken; err != nil || time.Since(began) > 500*time.Millisecond {
			c.t.Errorf("woken after %v: %v", time.Since(began), err)
		}
		next := mustAcquire(c.t, c.clients[1], lease("k", queueTerm))
		if err := c.clients[0].Release(c.t.Context(), holder); !errors.Is(err, backend.ErrLost) {
			c.t.Errorf("a Release of what is another's: %v, want ErrLost", err)
		}
		c.release(c.clients[1], next)
	})
}

// Clients that queue and clients that do not, as those of the release before, get
// the lock beside each other, one at a time.
func TestQueueBesideClientsWithoutIt(t *testing.T) {
	crowds(t, func(c *crowd) {
		for range 2 {
			o := &redis.Options{Unordered: true, Logger: slog.New(slog.DiscardHandler)}
			c.clients = append(c.clients, strangers(c.t, redistest.Addrs(c.servers), o))
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
		defer cancel()
		var inside atomic.Int32
		var all sync.WaitGroup
		for i, q := range c.clients {
			all.Go(func() {
				for n := range 10 {
					got, err := patient(ctx, q, "k")
					if err != nil {
						c.t.Errorf("client %d, cycle %d: %v", i, n, err)
						return
					}
					if inside.Add(1) != 1 {
						c.t.Error("two have the lock")
					}
					time.Sleep(time.Millisecond)
					inside.Add(-1)
					c.release(q, got)
				}
			})
		}
		all.Wait()
		c.leftNothing()
	})
}
