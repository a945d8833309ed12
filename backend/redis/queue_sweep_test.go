package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// Whoever is refused keeps its place in the queue for the next attempt, also where
// the server has to be told that an attempt which it did not answer is over.
func TestPlaceInTheQueueOutlivesARefusal(t *testing.T) {
	behindProxy(t, func(t *testing.T, s *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
		other := unordered(t, direct)
		once := func(o *goredis.Options) { o.MaxRetries = -1 }
		b := newBackend(t, worst(t, p.Addr, once))
		b.StandInQueues()
		warm(t, b)
		mustAcquire(t, other, lease("k", 20*time.Second))

		want := lease("k", 20*time.Second)
		want.Ticket = "0000000000000001"
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error)
		go func() { _, err := b.Wait(ctx, want); waited <- err }()
		stands := func() bool { return direct.ZCard(t.Context(), redis.QueueKey("k")).Val() == 1 }
		eventually(t, "it stands in the queue", stands)
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("wait: %v", err)
		}

		lost := p.LoseReply(1, want.Owner)
		if _, err := b.Acquire(t.Context(), want); err == nil || errors.Is(err, backend.ErrHeld) {
			t.Errorf("an answer that was lost came: %v", err)
		}
		<-lost
		if err := insist(t, func() error { _, err := b.Acquire(t.Context(), want); return err }); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("of a lock that another holds: %v", err)
		}
		eventually(t, "the attempt is over for the server", func() bool {
			return direct.ZCard(t.Context(), redis.TombsKey("k")).Val() == 1
		})
		if !stands() {
			t.Error("its place was given up with the attempt")
		}
	})
}
