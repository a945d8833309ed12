package conformance_test

import (
	"context"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// afterCancel has then called for each Wait that was cancelled.
func (f *faulty) afterCancel(then func()) {
	wait := f.wait
	f.wait = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
		got, err := wait(ctx, l)
		if ctx.Err() != nil {
			then()
		}
		return got, err
	}
}

var endingFaults = []planted{
	{fault: "M44 a goroutine that stays for each cancelled Wait", id: "endings/nothing-stays", plant: func(f *faulty) {
		f.afterCancel(func() { go time.Sleep(time.Hour) })
	}},
	{fault: "M44 a goroutine that asks on after a refusal", id: "endings/nothing-stays", plant: func(f *faulty) {
		acquire := f.acquire
		f.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			got, err := acquire(ctx, l)
			if err != nil {
				go func() {
					for range 100 {
						time.Sleep(time.Minute)
						_ = f.Backend.Renew(context.Background(), l)
					}
				}()
			}
			return got, err
		}
	}},
	{fault: "a Close that does not wait for what it ends", id: "endings/nothing-stays", plant: func(f *faulty) {
		closed := make(chan struct{})
		f.afterCancel(func() {
			go func() {
				<-closed
				time.Sleep(time.Minute)
			}()
		})
		f.close = func() { close(closed) }
	}},
	{fault: "a Close that waits for what nothing ends", id: "endings/nothing-stays", plant: func(f *faulty) {
		var left sync.WaitGroup
		f.afterCancel(func() { left.Go(func() { time.Sleep(time.Hour) }) })
		f.close = left.Wait
	}},
	{fault: "M44 a goroutine that stays for each call that got no answer", id: "endings/cut-off", defect: badClient(func(c *client) {
		c.renew = func(ctx context.Context, l backend.Lease) error {
			err := c.Link.Renew(ctx, l)
			if ctx.Err() != nil {
				go time.Sleep(time.Hour)
			}
			return err
		}
	})},
	{fault: "a Close that waits for a call that has returned", id: "endings/cut-off", defect: badClient(func(c *client) {
		open := 0
		c.renew = func(ctx context.Context, l backend.Lease) error {
			err := c.Link.Renew(ctx, l)
			if ctx.Err() != nil {
				open++
			}
			return err
		}
		c.close = func() { time.Sleep(time.Duration(open) * time.Hour) }
	})},
}
