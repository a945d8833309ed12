package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/mutex"
)

func Example() {
	ctx := context.Background()
	m, err := mutex.New(memory.New(nil), "report", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = m.Do(ctx, func(ctx context.Context) error {
		token, _ := fencing.FromContext(ctx)
		fmt.Println("writing with token", token)
		return nil
	})
	fmt.Println(err)
	// Output:
	// writing with token 1
	// <nil>
}

func ExampleNew() {
	_, err := mutex.New(memory.New(nil), "", nil)
	fmt.Println(err)
	// Output: invalid Key: it is empty
}

func ExampleNewSession() {
	s, err := mutex.NewSession(memory.New(nil), &mutex.Options{
		TTL:     5 * time.Second, // how long others wait if this process dies
		MaxHold: time.Minute,     // and if it hangs
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(context.Background())
	fmt.Println(s.Mutex("invoice-17").TryLock(context.Background()))
	// Output: <nil>
}

func ExampleSession_Mutex() {
	s, _ := mutex.NewSession(memory.New(nil), nil)
	ctx := context.Background()
	fmt.Println(s.Mutex("a").TryLock(ctx))
	fmt.Println(s.Mutex("a").TryLock(ctx)) // the same mutex
	fmt.Println(s.Mutex("b").TryLock(ctx))
	fmt.Println(s.Close(ctx))
	// Output:
	// <nil>
	// lock "a": held by another
	// <nil>
	// <nil>
}

func ExampleSession_Close() {
	s, _ := mutex.NewSession(memory.New(nil), nil)
	ctx := context.Background()
	h, _ := s.Mutex("report").Hold(ctx)

	fmt.Println(s.Close(ctx))
	fmt.Println(h.Err())
	fmt.Println(s.Mutex("report").Lock(ctx))
	// Output:
	// <nil>
	// lost "report": closed
	// lock "report": session closed
}

func ExampleLeased_Lock() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel() // bounds the wait, not the hold

	if err := m.Lock(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer m.Unlock(ctx)
	fmt.Println("locked")
	// Output: locked
}

func ExampleLeased_TryLock() {
	b := memory.New(nil)
	one, _ := mutex.New(b, "report", nil)
	two, _ := mutex.New(b, "report", nil)
	ctx := context.Background()

	fmt.Println(one.TryLock(ctx))
	fmt.Println(errors.Is(two.TryLock(ctx), mutex.ErrHeld))
	fmt.Println(one.Unlock(ctx))
	fmt.Println(two.TryLock(ctx))
	fmt.Println(two.Unlock(ctx))
	// Output:
	// <nil>
	// true
	// <nil>
	// <nil>
	// <nil>
}

func ExampleLeased_Unlock() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	fmt.Println(m.Unlock(context.Background()))
	// Output: unlock "report": not locked
}

func ExampleLeased_Hold() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	ctx := context.Background()
	h, err := m.Hold(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Unlock(ctx)

	select {
	case <-h.Lost():
		fmt.Println(h.Err())
	case <-time.After(time.Millisecond): // the work
		fmt.Println("done with token", h.Token())
	}
	// Output: done with token 1
}

func ExampleLeased_TryHold() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	ctx := context.Background()
	h, _ := m.TryHold(ctx)
	_, err := m.TryHold(ctx)
	fmt.Println(err)
	fmt.Println(h.Unlock(ctx))
	// Output:
	// lock "report": held by another
	// <nil>
}

func ExampleLeased_Do() {
	m, _ := mutex.New(memory.New(nil), "report", &mutex.Options{
		TTL: 20 * time.Millisecond, RenewEvery: -1,
	})
	err := m.Do(context.Background(), func(ctx context.Context) error {
		<-ctx.Done() // work that takes too long
		return nil
	})
	fmt.Println(err)
	fmt.Println(errors.Is(err, mutex.ErrLost))
	// Output:
	// lost "report": expired
	// true
}

func ExampleLeased_Current() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	ctx := context.Background()
	if err := m.Lock(ctx); err != nil {
		return
	}
	defer m.Unlock(ctx)
	fmt.Println(m.Key(), m.Current().Token())
	// Output: report 1
}

func ExampleHold_Until() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	ctx := context.Background()
	h, _ := m.Hold(ctx)
	defer h.Unlock(ctx)
	fmt.Println(time.Until(h.Until()) > 9*time.Second, h.Err())
	// Output: true <nil>
}

func ExampleHold_Context() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	ctx := context.Background()
	h, _ := m.Hold(ctx)
	hctx, cancel := h.Context(ctx)
	defer cancel()

	fmt.Println(fencing.FromContext(hctx))
	fmt.Println(hctx.Err())
	h.Unlock(ctx)
	fmt.Println(hctx.Err())
	// Output:
	// 1 true
	// <nil>
	// context canceled
}

func ExampleHold_Unlock() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	ctx, cancel := context.WithCancel(context.Background())
	h, _ := m.Hold(ctx)
	cancel()                   // a request that was given up
	fmt.Println(h.Unlock(ctx)) // still unlocks
	fmt.Println(h.Unlock(ctx)) // the first result again
	// Output:
	// <nil>
	// <nil>
}

func ExampleLocker() {
	m, _ := mutex.New(memory.New(nil), "counter", nil)
	var mu sync.Locker = mutex.Locker(context.Background(), m)

	n := 0
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			n++
		})
	}
	wg.Wait()
	fmt.Println(n)
	// Output: 100
}

// logger is a layer over a backend that also observes the locks.
type logger struct{ backend.Backend }

func (l logger) Unwrap() backend.Backend { return l.Backend }

func (l logger) Observe(ctx context.Context, e mutex.Event) (context.Context, func(error)) {
	return ctx, func(err error) { fmt.Println(e.Op, e.Key, err) }
}

func ExampleObserver() {
	m, _ := mutex.New(logger{memory.New(nil)}, "report", nil)
	ctx := context.Background()
	m.Lock(ctx)
	m.Unlock(ctx)
	// Output:
	// acquired report <nil>
	// lock report <nil>
	// unlock report <nil>
	// ended report <nil>
}
