package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// movesASlot moves the slot of locks to another master, a step at a time, while
// they are renewed, asked for, acquired and released. A hold is never lost, nor
// granted twice. While the slot is between two masters, calls with a key that
// is at neither are refused (TRYAGAIN) and have to be repeated.
func movesASlot(t *testing.T, c *redistest.Cluster) {
	b := overCluster(t, c)
	held := mustAcquire(t, b, lease("{s}held", 20*time.Second))
	given := mustAcquire(t, b, lease("{s}given", 20*time.Second))
	m := c.Migrate("{s}")
	load := startLoad(t, b, held)
	load.round(t)
	m.Keys(func(key string) bool { return key == held.Key }) // and not its counter
	load.round(t)
	m.Keys(func(key string) bool { return key == given.Key })
	released := make(chan error, 1)
	go func() { released <- insist(t, func() error { return b.Release(t.Context(), given) }) }()
	load.round(t)
	m.Keys(nil)
	load.round(t)
	m.End()
	if err := <-released; err != nil {
		t.Errorf("release: %v", err)
	}
	load.round(t)
	load.stop()
	mustRelease(t, b, held)
	if got := locks(t, m.To.Client()); slices.Contains(got, held.Key) || slices.Contains(got, given.Key) {
		t.Errorf("there are %q", got)
	}
	t.Logf("%d renewals, %d refusals, %d holds; %d calls were to be repeated", load.renewed.Load(), load.refused.Load(), load.granted.Load(), load.again.Load())
}

// movesASlotAtonce has the servers themselves move the slot of locks round all
// masters, while they are renewed, asked for, waited for, acquired and released.
// Nothing is refused then.
func movesASlotAtonce(t *testing.T, c *redistest.Cluster) {
	if f := c.Masters[0].Flavour; f == redistest.Redis7 {
		t.Skipf("nothing to check: %s moves slots key by key", f)
	}
	b, other := overCluster(t, c), overCluster(t, c)
	held := mustAcquire(t, b, lease("{s}held", 30*time.Second))
	load := startLoad(t, b, held)
	for range c.Masters {
		awaited := mustAcquire(t, b, lease("{s}awaited", 20*time.Second))
		next := make(chan backend.Lease, 1)
		go func() { next <- queue(t, other, awaited.Key) }()
		load.round(t)
		to := c.MigrateAtonce("{s}")
		if got := locks(t, to.Client()); !slices.Contains(got, held.Key) || !slices.Contains(got, awaited.Key) {
			t.Errorf("the new master has %q", got)
		}
		load.round(t)
		mustRelease(t, b, awaited)
		got := <-next
		if got.Token <= awaited.Token {
			t.Errorf("token %d came after %d", got.Token, awaited.Token)
		}
		mustRelease(t, other, got)
	}
	load.stop()
	mustRelease(t, b, held)
	wakes(t, b, other, held.Key)
	if n := load.again.Load(); n > 0 {
		t.Errorf("%d calls had to be repeated", n)
	}
	t.Logf("%d renewals, %d refusals, %d holds", load.renewed.Load(), load.refused.Load(), load.granted.Load())
}

// queue waits for a lock until it has it.
func queue(t *testing.T, b *redis.Backend, key string) backend.Lease {
	for t.Context().Err() == nil {
		want := lease(key, 20*time.Second)
		_, err := b.Wait(t.Context(), want)
		if err == nil {
			if want, err = b.Acquire(t.Context(), want); err == nil {
				return want
			}
		}
		if err != nil && !errors.Is(err, backend.ErrHeld) {
			t.Errorf("wait: %v", err)
		}
	}
	return backend.Lease{}
}

// load is what goes on with the locks of one slot.
type load struct {
	cancel                           context.CancelFunc
	wg                               sync.WaitGroup
	rounds                           [3]atomic.Int64
	renewed, refused, granted, again atomic.Int64
}

func startLoad(t *testing.T, b *redis.Backend, held backend.Lease) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	var last backend.Token
	var hold *backend.Lease
	t.Cleanup(func() {
		l.stop()
		if hold != nil {
			_ = b.Release(context.WithoutCancel(ctx), *hold)
		}
	})
	for i, step := range []func(){
		func() { l.expect(t, "renew", b.Renew(ctx, held), nil, &l.renewed) },
		func() {
			want := lease(held.Key, time.Second)
			_, err := b.Acquire(ctx, want)
			l.expect(t, "acquire what is held", err, backend.ErrHeld, &l.refused)
			if err != nil && !errors.Is(err, backend.ErrHeld) {
				_ = b.Release(ctx, want) // as a caller owes it
			}
		},
		func() { last, hold = l.cycle(ctx, t, b, last, hold) },
	} {
		l.wg.Go(func() {
			for ctx.Err() == nil {
				step()
				l.rounds[i].Add(1)
			}
		})
	}
	return l
}

// cycle makes a step of holding and releasing a lock, which is repeated until it
// is answered.
func (l *load) cycle(ctx context.Context, t *testing.T, b *redis.Backend, last backend.Token, hold *backend.Lease) (backend.Token, *backend.Lease) {
	if hold == nil {
		hold = new(lease("{s}free", 20*time.Second))
	}
	if hold.Token == 0 {
		got, err := b.Acquire(ctx, *hold)
		if l.expect(t, "acquire", err, nil, &l.granted) {
			if got.Token <= last {
				t.Errorf("token %d came after %d", got.Token, last)
			}
			return got.Token, &got
		}
		return last, hold
	}
	err := b.Release(ctx, *hold)
	if l.expect(t, "release", err, nil, new(atomic.Int64)) {
		return last, nil
	}
	return last, hold
}

// expect says whether a call was answered as it should be. What the cluster
// refuses for the moment does not count.
func (l *load) expect(t *testing.T, what string, got, want error, count *atomic.Int64) bool {
	switch {
	case errors.Is(got, want):
		count.Add(1)
		return true
	case errors.Is(got, context.Canceled):
	case passing(got):
		l.again.Add(1)
	default:
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
	return false
}

// passing says whether a cluster refuses a call for the moment.
func passing(err error) bool {
	for _, p := range []string{"TRYAGAIN", "ASK", "MOVED", "CLUSTERDOWN"} {
		if goredis.HasErrorPrefix(err, p) {
			return true
		}
	}
	return false
}

// round waits until everything has happened twice more.
func (l *load) round(t *testing.T) {
	t.Helper()
	for i := range l.rounds {
		from := l.rounds[i].Load()
		eventually(t, fmt.Sprintf("role %d goes on", i), func() bool { return l.rounds[i].Load() >= from+2 })
	}
}

func (l *load) stop() {
	l.cancel()
	l.wg.Wait()
}
