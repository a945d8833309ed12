package readme_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/internal/redistest"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/retry"
)

func Example_locker() {
	ctx := context.Background()
	m, err := mutex.New(memory.New(nil), "report", nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	counter := 0

	var mu sync.Locker = mutex.Locker(ctx, m) // it was: var mu sync.Mutex

	mu.Lock()
	counter++
	mu.Unlock()

	fmt.Println(counter)
	// Output: 1
}

func Example_do() {
	ctx := context.Background()
	b := memory.New(nil)
	m, err := mutex.New(b, "report", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	report := &report{}

	err = m.Do(ctx, func(ctx context.Context) error { // this ctx ends if the lock is lost
		token, _ := fencing.FromContext(ctx)
		return report.write(ctx, token, "all is well")
	})

	fmt.Println(err, report.text)
	fmt.Println(report.write(ctx, 0, "no token"))
	// Output:
	// <nil> all is well
	// invalid Token: it is 0, which fences nothing
}

type report struct {
	gate fencing.Gate
	text string
}

func (r *report) write(_ context.Context, token fencing.Token, text string) error {
	return r.gate.Do(token, func() error {
		r.text = text
		return nil
	})
}

func Example_errors() {
	ctx := context.Background()
	b := memory.New(nil)
	other, _ := mutex.New(b, "report", nil)
	other.Lock(ctx)
	m, _ := mutex.New(b, "report", nil)

	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	err := m.Lock(ctx)
	fmt.Println(errors.Is(err, mutex.ErrHeld), errors.Is(err, context.DeadlineExceeded))
	fmt.Println(errors.Is(m.Unlock(ctx), mutex.ErrNotLocked))
	// Output:
	// true true
	// true
}

// fiveNodes locks on a quorum, and again over a layer that repeats calls.
func fiveNodes(ctx context.Context, nodes []string) (err error) {
	b, err := redis.Open(ctx, nil, nodes...) // redis://r1:6379, redis://r2:6379, …
	if err != nil {
		return err
	}
	defer b.Close(ctx)

	m, err := mutex.New(b, "report", nil)
	if err != nil {
		return err
	}
	if err := m.Do(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}

	patient := backend.Wrap(b, retry.Middleware(retry.FullJitter(20*time.Millisecond, time.Second)))

	m, err = mutex.New(patient, "report", nil)
	if err != nil {
		return err
	}
	return m.Do(ctx, func(context.Context) error { return nil })
}

func TestFiveNodes(t *testing.T) {
	flavour := redistest.Flavours()[0]
	servers := redistest.Start(t, flavour, 5)
	var urls []string
	for _, addr := range redistest.Addrs(servers) {
		urls = append(urls, "redis://"+addr)
	}
	b, err := redis.Open(t.Context(), nil, urls...)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	if err := b.(*redis.Quorum).DeclareNew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := fiveNodes(t.Context(), urls); err != nil {
		t.Errorf("on %s: %v", flavour, err)
	}
}
