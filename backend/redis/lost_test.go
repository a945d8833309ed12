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

// behindProxy is a server, a client of it that is not disturbed, and a proxy.
func behindProxy(t *testing.T, test func(t *testing.T, s *redistest.Server, direct *goredis.Client, p *redistest.Proxy)) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		test(t, s, s.Client(), redistest.NewProxy(t, s.Addr))
	})
}

// warm loads the scripts, so that the next command of each verb is the one that
// runs. It repeats what a client did not: go-redis does not greet a server again
// that took longer than a time-out.
func warm(t *testing.T, b backend.Backend) {
	t.Helper()
	held := mustInsist(t, b, lease("warm", 20*time.Second))
	for _, call := range []func(context.Context, backend.Lease) error{b.Renew, b.Release} {
		if err := insist(t, func() error { return call(t.Context(), held) }); err != nil {
			t.Fatal(err)
		}
	}
}

// Cases 1, 22 and 35: the connection breaks after the server did what it was
// asked, and the client asks again by itself.
func TestClientThatSendsAgainChangesNoAnswer(t *testing.T) {
	behindProxy(t, func(t *testing.T, _ *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
		b, ctx := newBackend(t, worst(t, p.Addr)), t.Context()
		warm(t, b)
		before := mustAcquire(t, b, lease("k", time.Second))
		mustRelease(t, b, before)

		want := lease("k", 10*time.Second)
		want.Token = before.Token + 1e9
		lost := p.LoseReply(1, "evalsha")
		held := mustAcquire(t, b, want)
		<-lost
		if held.Token != want.Token {
			t.Errorf("got token %d, want %d: it moves once", held.Token, want.Token)
		}
		lost = p.LoseReply(1, held.Owner)
		if err := b.Renew(ctx, held); err != nil {
			t.Errorf("renew: %v", err)
		}
		<-lost
		lost = p.LoseReply(1, held.Owner)
		if err := b.Release(ctx, held); err != nil {
			t.Errorf("release: %v", err)
		}
		<-lost
		if got := locks(t, direct); len(got) != 0 {
			t.Errorf("there are %q", got)
		}
		if next := mustAcquire(t, b, lease("k", time.Second)); next.Token != held.Token+1 {
			t.Errorf("got token %d, want %d", next.Token, held.Token+1)
		}
	})
}

// Case 1, by time-out: the first request is carried out, its reply is still on
// its way when the client asks again.
func TestClientThatSendsAgainAfterATimeoutChangesNoAnswer(t *testing.T) {
	behindProxy(t, func(t *testing.T, _ *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
		b := newBackend(t, worst(t, p.Addr, func(o *goredis.Options) { o.ReadTimeout = 150 * time.Millisecond }))
		warm(t, b)
		kept := p.KeepReply(1, "evalsha")
		held := mustInsist(t, b, lease("k", 20*time.Second))
		<-kept
		if b.Lanes() != 1 {
			t.Error("nothing is known of the request that is on its way")
		}
		if err := insist(t, func() error { return b.Release(t.Context(), held) }); err != nil {
			t.Errorf("release: %v", err)
		}
		if b.Lanes() != 0 {
			t.Error("the owner's lane outlives its release")
		}
		if got := locks(t, direct); len(got) != 0 {
			t.Errorf("there are %q", got)
		}
		if _, err := newBackend(t, direct).Acquire(t.Context(), held); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("a request that came late got %v, want ErrHeld", err)
		}
		if got := locks(t, direct); len(got) != 0 {
			t.Errorf("a request that came late left %q", got)
		}
	})
}

func TestLostReplyIsAnUnknownOutcome(t *testing.T) {
	behindProxy(t, func(t *testing.T, s *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
		b := newBackend(t, redistest.NewClient(t, p.Addr))
		warm(t, b)
		ctx := t.Context()
		unknown := func(op string, err error) {
			t.Helper()
			var e *backend.Error
			if !errors.As(err, &e) || e.Op != op || e.Key != "k" || e.Node != p.Addr || errors.Is(err, backend.ErrHeld) ||
				errors.Is(err, backend.ErrLost) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v, want an unknown outcome that names key and server", op, err)
			}
		}
		want := lease("k", 20*time.Second)
		lost := p.LoseReply(1, "evalsha")
		_, err := b.Acquire(ctx, want)
		unknown("acquire", err)
		<-lost
		held := mustAcquire(t, b, want) // the caller repeats it
		lost = p.LoseReply(1, held.Owner)
		unknown("renew", b.Renew(ctx, held))
		<-lost
		lost = p.LoseReply(1, held.Owner)
		unknown("release", b.Release(ctx, held))
		<-lost
		mustRelease(t, b, held)

		want = lease("k", 20*time.Second)
		lost = p.LoseReply(1, "evalsha")
		_, err = b.Acquire(ctx, want)
		unknown("acquire", err)
		<-lost
		if got := locks(t, direct); len(got) != 1 {
			t.Fatalf("there are %q, want the grant that nobody was told of", got)
		}
		mustRelease(t, b, want) // the caller gives up
		if got := locks(t, direct); len(got) != 0 {
			t.Errorf("there are %q", got)
		}
		if got := b.Lanes(); got != 0 {
			t.Errorf("%d lanes stay", got)
		}
	})
}

// Case 33.
func TestLateReleaseLeavesTheNextHoldAlone(t *testing.T) {
	behindProxy(t, func(t *testing.T, _ *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
		b := newBackend(t, redistest.NewClient(t, p.Addr))
		warm(t, b)
		old := mustAcquire(t, b, lease("k", 10*time.Second))
		lost := p.LoseReply(1, old.Owner)
		if err := b.Release(t.Context(), old); err == nil {
			t.Fatal("the reply was not lost")
		}
		<-lost
		next := mustAcquire(t, b, lease("k", 10*time.Second))
		if err := b.Release(t.Context(), old); !errors.Is(err, backend.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if direct.Get(t.Context(), "k").Val() != next.Owner {
			t.Error("an old release deleted the next hold")
		}
	})
}

// A refusal that was sent twice: the first request may still be on its way, and
// nobody releases an attempt that was refused.
func TestRefusalIsCleanedUpByItself(t *testing.T) {
	behindProxy(t, func(t *testing.T, _ *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
		b := newBackend(t, worst(t, p.Addr))
		warm(t, b)
		direct.Set(t.Context(), "k", "another", 10*time.Second)
		want := lease("k", 10*time.Second)
		lost := p.LoseReply(1, "evalsha")
		if _, err := b.Acquire(t.Context(), want); !errors.Is(err, backend.ErrHeld) {
			t.Fatalf("got %v, want ErrHeld", err)
		}
		<-lost
		eventually(t, "the owner's lane ends", func() bool { return b.Lanes() == 0 })
		direct.Del(t.Context(), "k")
		if _, err := newBackend(t, direct).Acquire(t.Context(), want); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("a request that came late got %v, want ErrHeld", err)
		}
		if got := locks(t, direct); len(got) != 0 {
			t.Errorf("a request that came late left %q", got)
		}
	})
}

// A refusal whose clean-up got lost as well: it takes the key whenever it arrives,
// so what an earlier request of the owner may bring in between is not to be had.
func TestOwnerIsSpentWhileItsCleanUpMayComeLate(t *testing.T) {
	behindProxy(t, func(t *testing.T, _ *redistest.Server, direct *goredis.Client, p *redistest.Proxy) {
		b := newBackend(t, redistest.NewClient(t, p.Addr))
		warm(t, b)
		want := lease("k", 20*time.Second)
		late := p.LoseRequest(1, "evalsha")
		if _, err := b.Acquire(t.Context(), want); err == nil || errors.Is(err, backend.ErrHeld) {
			t.Fatalf("got %v, want an unknown outcome", err)
		}
		<-late
		direct.Set(t.Context(), "k", "another", 10*time.Second)
		cleanUp := p.LoseRequest(2, "evalsha")
		if _, err := b.Acquire(t.Context(), want); !errors.Is(err, backend.ErrHeld) {
			t.Fatalf("got %v, want ErrHeld", err)
		}
		<-cleanUp
		direct.Del(t.Context(), "k")
		held := mustAcquire(t, newBackend(t, direct), want) // the first request arrives
		if err := b.Renew(t.Context(), held); !errors.Is(err, backend.ErrLost) {
			t.Errorf("renewed: %v, and the clean-up is still to come", err)
		}
		if _, err := b.Acquire(t.Context(), want); !errors.Is(err, backend.ErrHeld) {
			t.Errorf("acquired: %v, and the clean-up is still to come", err)
		}
		eventually(t, "the clean-up is sent again", func() bool { return len(locks(t, direct)) == 0 && b.Lanes() == 0 })
	})
}

// Who never releases leaves nothing in memory for longer than a term may last.
func TestLaneIsForgottenInTime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Miniredis, 1)[0]
	p := redistest.NewProxy(t, s.Addr)
	b, err := redis.New(redistest.NewClient(t, p.Addr), &redis.Options{MaxTTL: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer closeWithin(t, b)
	lost := p.LoseReply(1, "evalsha")
	if _, err := b.Acquire(t.Context(), lease("k", 20*time.Millisecond)); err == nil {
		t.Fatal("the reply was not lost")
	}
	<-lost
	eventually(t, "the lane is forgotten", func() bool { return b.Lanes() == 0 })
}
