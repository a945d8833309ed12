package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/internal/redistest"
)

// barrier is a hook that holds back the first script until it is opened, and
// counts what is sent by itself and in pipelines.
type barrier struct {
	opened         chan struct{}
	first          sync.Once
	reached        chan struct{}
	alone, batches atomic.Int32
	fail           atomic.Pointer[error] // what pipelines end with instead
}

func newBarrier() *barrier {
	return &barrier{opened: make(chan struct{}), reached: make(chan struct{})}
}

func (b *barrier) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (b *barrier) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() == "evalsha" {
			b.first.Do(func() {
				close(b.reached)
				<-b.opened
			})
			b.alone.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (b *barrier) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if cmds[0].Name() != "evalsha" {
			return next(ctx, cmds) // the client's own
		}
		b.batches.Add(1)
		if err := b.fail.Load(); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(*err)
			}
			return *err
		}
		return next(ctx, cmds)
	}
}

// queued starts n calls of Acquire that wait behind one that is on its way, and
// opens the barrier when they do. It returns the error of each.
func queued(t *testing.T, s *redistest.Server, b *barrier, n int, want func(i int) (context.Context, backend.Lease)) []error {
	t.Helper()
	c := worst(t, s.Addr)
	be := newBackend(t, c)
	mustRelease(t, be, mustAcquire(t, be, lease("warm", 20*time.Second))) // the scripts are loaded
	c.AddHook(b)
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := be.Acquire(t.Context(), lease("first", 20*time.Second)); err != nil {
			t.Error(err)
		}
	})
	<-b.reached
	errs := make([]error, n)
	for i := range n {
		ctx, l := want(i)
		all.Go(func() { _, errs[i] = be.Acquire(ctx, l) })
	}
	time.Sleep(200 * time.Millisecond) // who comes later goes into a later pipeline
	close(b.opened)
	all.Wait()
	return errs
}

func TestCallsOfManyGoroutinesTravelTogether(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBarrier()
		for _, err := range queued(t, s, b, 100, func(i int) (context.Context, backend.Lease) {
			return t.Context(), lease(fmt.Sprint("k", i), 20*time.Second)
		}) {
			if err != nil {
				t.Error(err)
			}
		}
		if alone, batches := b.alone.Load(), b.batches.Load(); alone+batches > 20 {
			t.Errorf("%d commands by themselves and %d pipelines for 101 calls", alone, batches)
		}
	})
}

// What is wrong with one call is no other's error.
func TestCallsThatTravelTogetherFailByThemselves(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		if err := worst(t, s.Addr).HSet(t.Context(), "k1", "f", "v").Err(); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		errs := queued(t, s, newBarrier(), 5, func(i int) (context.Context, backend.Lease) {
			if i == 2 {
				return gone, lease("k2", 20*time.Second)
			}
			return t.Context(), lease(fmt.Sprint("k", i), 20*time.Second)
		})
		for i, err := range errs {
			switch {
			case i == 1 && (err == nil || errors.Is(err, backend.ErrHeld)):
				t.Errorf("a hash at the key: %v", err)
			case i == 2 && !errors.Is(err, context.Canceled):
				t.Errorf("cancelled: %v", err)
			case i != 1 && i != 2 && err != nil:
				t.Errorf("call %d: %v", i, err)
			}
		}
		if n := worst(t, s.Addr).Exists(t.Context(), "k2").Val(); n != 0 {
			t.Error("a call that was cancelled before it was sent took the key")
		}
	})
}

func TestPipelineThatFailsIsAnUnknownOutcomeForEach(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		b := newBarrier()
		cut := errors.New("connection cut")
		b.fail.Store(&cut)
		for _, err := range queued(t, s, b, 20, func(i int) (context.Context, backend.Lease) {
			return t.Context(), lease(fmt.Sprint("k", i), 20*time.Second)
		}) {
			if err != nil && (!errors.Is(err, cut) || errors.Is(err, backend.ErrHeld)) {
				t.Error(err)
			}
		}
		if b.batches.Load() == 0 {
			t.Error("nothing travelled together")
		}
	})
}
