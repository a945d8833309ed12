package mutex

import (
	"context"
	"sync"
	"time"
)

// callCtx is what the backend is called with: a context whose end depends on
// more than the caller's. Most calls return without waiting for it, so what
// Done takes is made for the first who asks.
type callCtx struct {
	context.Context                 // the caller's
	closing         context.Context // ends it too; or, if nil, it is patient:
	begun           time.Time       // it lasts for grace from here at least,
	limit           time.Time       // and ends here, unless that is zero

	mu   sync.Mutex
	made context.Context
	end  context.CancelFunc
	over bool
}

// stop ends the context.
func (c *callCtx) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.end != nil {
		c.end()
	}
}

func (c *callCtx) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made, c.end = c.make()
		if c.over {
			c.end()
		}
	}
	return c.made.Done()
}

func (c *callCtx) make() (context.Context, context.CancelFunc) {
	if c.closing == nil {
		return patience(c.Context, c.begun, c.limit)
	}
	ctx, cancel := context.WithCancelCause(c.Context)
	stop := context.AfterFunc(c.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

func (c *callCtx) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		return c.made.Err()
	case c.over:
		return context.Canceled
	case c.closing != nil:
		if c.closing.Err() != nil {
			return context.Canceled
		}
		return c.Context.Err()
	case !c.limit.IsZero() && time.Until(c.limit) <= 0:
		return context.DeadlineExceeded
	case c.Context.Err() != nil && time.Since(c.begun) >= grace:
		return context.Canceled
	}
	return nil
}

func (c *callCtx) Deadline() (time.Time, bool) {
	if c.closing == nil {
		return c.limit, !c.limit.IsZero()
	}
	return c.Context.Deadline()
}

// Value also leads to what was made, as package context expects of a context
// that ends with it.
func (c *callCtx) Value(key any) any {
	c.mu.Lock()
	made := c.made
	c.mu.Unlock()
	if made != nil {
		return made.Value(key)
	}
	return c.Context.Value(key)
}

// grace is how long a release waits for its answer though ctx has ended.
const grace = time.Second

// patience returns a context for what has to be done though ctx may have ended:
// it has ctx's values and ends at the later of ctx's end and the grace since
// begun, but not after limit, unless that is zero.
func patience(ctx context.Context, begun, limit time.Time) (context.Context, context.CancelFunc) {
	base := context.WithoutCancel(ctx)
	var c context.Context
	var cancel context.CancelFunc
	if limit.IsZero() {
		c, cancel = context.WithCancel(base)
	} else {
		c, cancel = context.WithDeadline(base, limit)
	}
	if ctx.Done() == nil {
		return c, cancel
	}
	stop := context.AfterFunc(ctx, func() {
		if left := grace - time.Since(begun); left > 0 {
			time.AfterFunc(left, cancel)
		} else {
			cancel()
		}
	})
	return c, func() {
		stop()
		cancel()
	}
}
