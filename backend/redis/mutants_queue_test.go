package redis_test

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
)

// tellsTurns has two wait at a quorum of one, whose tickets have another order as
// texts than as numbers.
func tellsTurns(t *testing.T, q, other *redis.Quorum, c *goredis.Client) {
	t.Helper()
	ctx, holder := t.Context(), mustAcquire(t, q, lease("k", queueTerm))
	holder.Ticket = "1 1-holder" // it has waited
	stand := func(ticket string) (backend.Lease, <-chan error) {
		want, told := lease("k", queueTerm), make(chan error, 1)
		want.Ticket = "1 " + ticket
		go func() {
			_, err := other.Wait(ctx, want)
			told <- err
		}()
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if c.ZScore(ctx, redis.QueueKey("k"), ticket).Err() == nil {
				return want, told
			}
		}
		t.Fatalf("noticed: %s does not stand in the queue", ticket)
		return want, told
	}
	told := func(who string, told <-chan error, want bool) {
		t.Helper()
		select {
		case err := <-told:
			if !want || err != nil {
				t.Fatalf("noticed: %s is told (%v)", who, err)
			}
		case <-time.After(300 * time.Millisecond):
			if want {
				t.Fatalf("noticed: %s is not told", who)
			}
		}
	}
	second, toSecond := stand("1000-b")
	first, toFirst := stand("900-a")
	told("the second", toSecond, false)
	if err := q.Release(ctx, lease("k", queueTerm)); err != nil { // nobody's
		t.Fatal(err)
	}
	stranger := lease("k", queueTerm)
	stranger.Ticket = "1 2000-c"
	if err := other.Release(ctx, stranger); err != nil || c.Exists(ctx, "k").Val() != 1 {
		t.Fatalf("noticed: a stranger's release frees the lock (%v)", err)
	}
	mustRelease(t, q, holder)
	told("the first", toFirst, true)
	told("the second", toSecond, false)
	if left := c.PTTL(ctx, redis.TurnKey("k")).Val(); c.Get(ctx, redis.TurnKey("k")).Val() != "900-a" || left <= 0 {
		t.Fatalf("noticed: it is kept for %q, %v", c.Get(ctx, redis.TurnKey("k")).Val(), left)
	}
	if n := c.ZCard(ctx, redis.QueueKey("k")).Val(); n != 1 {
		t.Fatalf("noticed: %d stand in the queue", n)
	}
	if err := other.Release(ctx, first); err != nil {
		t.Fatal(err)
	}
	told("the second", toSecond, true)
	got, err := other.Acquire(ctx, second)
	if err != nil {
		t.Fatalf("noticed: whose turn it is does not get the lock: %v", err)
	}
	_, toThird := stand("1500-d")
	third := lease("k", queueTerm)
	third.Ticket = "1 1400-e"
	c.ZAdd(ctx, redis.QueueKey("k"), goredis.Z{Score: 1400, Member: "1400-e"}) // and gives up
	if err := q.Release(ctx, third); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, other, got)
	told("the third", toThird, true)
	if n := c.ZCard(ctx, redis.QueueKey("k")).Val(); n != 0 {
		t.Fatalf("noticed: %d stand in the queue", n)
	}
	c.Del(ctx, redis.TurnKey("k"))
	c.ZAdd(ctx, redis.QueueKey("k"), goredis.Z{Score: 100, Member: "100-f"})
	last := lease("k", queueTerm)
	last.Ticket = "1 300-g"
	brief, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := other.Wait(brief, last); err == nil || c.Get(ctx, redis.TurnKey("k")).Val() != "100-f" {
		t.Fatal("noticed: a free lock is not kept for the first")
	}
	mustRelease(t, other, last)
}
