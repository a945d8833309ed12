package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

func ExampleLeased_Key() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	fmt.Println(m.Key())
	// Output: report
}

func ExampleHold_Key() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	ctx := context.Background()
	h, _ := m.Hold(ctx)
	defer h.Unlock(ctx)
	fmt.Println(h.Key())
	// Output: report
}

// The token goes along with what is written, so that the resource can refuse
// that of an earlier holder.
func ExampleHold_Token() {
	m, _ := mutex.New(memory.New(nil), "report", nil)
	ctx := context.Background()
	for range 2 {
		h, _ := m.Hold(ctx)
		fmt.Printf("UPDATE report SET token = %d WHERE token <= %[1]d\n", h.Token())
		h.Unlock(ctx)
	}
	// Output:
	// UPDATE report SET token = 1 WHERE token <= 1
	// UPDATE report SET token = 2 WHERE token <= 2
}

func ExampleHold_Lost() {
	m, _ := mutex.New(memory.New(nil), "report", &mutex.Options{TTL: 20 * time.Millisecond, RenewEvery: -1})
	h, _ := m.Hold(context.Background())
	select {
	case <-h.Lost():
		fmt.Println(h.Err())
	case <-time.After(time.Minute): // the work
		fmt.Println("done")
	}
	// Output: lost "report": expired
}

func ExampleHold_Err() {
	m, _ := mutex.New(memory.New(nil), "report", &mutex.Options{TTL: 200 * time.Millisecond, MaxHold: 250 * time.Millisecond})
	h, _ := m.Hold(context.Background())
	time.Sleep(300 * time.Millisecond) // a holder that hangs
	fmt.Println(h.Err())
	// Output: lost "report": max_hold
}

func ExampleLostError() {
	m, _ := mutex.New(memory.New(nil), "report", &mutex.Options{TTL: 20 * time.Millisecond, RenewEvery: -1})
	ctx := context.Background()
	m.Lock(ctx)
	time.Sleep(30 * time.Millisecond)

	err := m.Unlock(ctx)
	var lost *mutex.LostError
	fmt.Println(errors.Is(err, mutex.ErrLost), errors.As(err, &lost), lost.Key, lost.Reason)
	// Output: true true report expired
}
