package redis_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// One that could not leave the line, as the server was down just then, costs the
// next a round trip: its process hears of the grant, and declines it.
func TestWaiterWhoCouldNotLeaveCostsARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 1)
		join := func() *network { return &network{bubble: b, dice: rand.New(rand.NewPCG(1, 2))} }
		one, two := newBackend(t, join().client(t)), newBackend(t, join().client(t))
		holder, first, second := lease("k", 10*time.Second), lease("k", 10*time.Second), lease("k", 10*time.Second)
		if _, err := two.Acquire(t.Context(), holder); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := one.Wait(ctx, first); err == nil {
			t.Fatal("a lock that is held was passed on")
		}
		b.stop()
		if err := one.Release(t.Context(), first); err == nil {
			t.Fatal("a server that is down was left")
		}
		b.start()
		three := newBackend(t, join().client(t)) // with no connection that has broken
		var told time.Time
		waited := make(chan error, 1)
		go func() {
			_, err := three.Wait(t.Context(), second)
			told = time.Now()
			waited <- err
		}()
		time.Sleep(time.Second)
		insist(t, func() error { return two.Renew(t.Context(), holder) }) // all are connected again
		released := time.Now()
		if err := two.Release(t.Context(), holder); err != nil {
			t.Error(err)
		}
		if err := <-waited; err != nil || told.Sub(released) > 10*time.Millisecond {
			t.Errorf("the next in line was told after %v (error %v)", told.Sub(released), err)
		}
		if err := three.Release(t.Context(), second); err != nil {
			t.Error(err)
		}
		b.leftNothing(t)
	})
}
