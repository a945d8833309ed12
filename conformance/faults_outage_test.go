package conformance_test

import (
	"context"
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/internal/faultlink"
)

// client is a client of a store that is not as it should be.
type client struct {
	*conn
	acquire        func(context.Context, backend.Lease) (backend.Lease, error)
	renew, release func(context.Context, backend.Lease) error
	close          func()
}

func (c *client) Acquire(ctx context.Context, l backend.Lease) (backend.Lease, error) {
	return c.acquire(ctx, l)
}
func (c *client) Renew(ctx context.Context, l backend.Lease) error   { return c.renew(ctx, l) }
func (c *client) Release(ctx context.Context, l backend.Lease) error { return c.release(ctx, l) }

// badClient is the defect of a client.
func badClient(spoil func(*client)) *defect {
	return &defect{client: func(c *conn) backend.Backend {
		bad := &client{conn: c, acquire: c.Link.Acquire, renew: c.Link.Renew, release: c.Link.Release}
		spoil(bad)
		return bad
	}}
}

var lostFaults = []planted{
	{fault: "M38 its own value taken for another's", id: "lost/acquire", defect: &defect{ownIsAnothers: true}},
	{fault: "a silent Renew taken for a loss", id: "lost/renew", defect: badClient(func(c *client) {
		lostBefore := make(map[string]bool)
		c.renew = func(ctx context.Context, l backend.Lease) error {
			err := c.Link.Renew(ctx, l)
			if lostBefore[l.Owner] = lostBefore[l.Owner] || errors.Is(err, faultlink.ErrReply); lostBefore[l.Owner] {
				return lost("renew", l)
			}
			return err
		}
	})},
	{fault: "a repeated Release taken for a loss", id: "lost/release", defect: &defect{freeIsLost: true}},
	{fault: "M09 no answer counted as a grant", id: "lost/refusal", defect: badClient(func(c *client) {
		c.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			got, err := c.Link.Acquire(ctx, l)
			if errors.Is(err, faultlink.ErrReply) {
				l.Token = backend.Token(time.Now().UnixMicro())
				return l, nil
			}
			return got, err
		}
	})},
	{fault: "M50 no answer counted as contention", id: "lost/acquire", defect: badClient(func(c *client) {
		c.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			got, err := c.Link.Acquire(ctx, l)
			if errors.Is(err, faultlink.ErrReply) {
				err = &backend.Error{Op: "acquire", Key: l.Key, Err: backend.ErrHeld}
			}
			return got, err
		}
	})},
	{fault: "M07 a Release only where a grant was told", id: "lost/undone", defect: badClient(func(c *client) {
		c.release = func(ctx context.Context, l backend.Lease) error {
			if l.Token == 0 {
				return nil
			}
			return c.Link.Release(ctx, l)
		}
	})},
	{fault: "M38 M31 a new token for a client's own retry", id: "history/lossy", defect: badClient(func(c *client) {
		c.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			got, err := c.Link.Acquire(ctx, l)
			if errors.Is(err, faultlink.ErrReply) {
				got, err = c.Link.Acquire(ctx, l)
				got.Token++
			}
			return got, err
		}
	})},
}

var lateFaults = []planted{
	{fault: "a call that waits for its answer", id: "late/prompt", defect: badClient(func(c *client) {
		c.renew = func(ctx context.Context, l backend.Lease) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Link.Renew(context.WithoutCancel(ctx), l)
		}
	})},
	{fault: "M37 T8 a Release that overtakes its Acquire", id: "late/undone", defect: badClient(func(c *client) {
		c.release = func(ctx context.Context, l backend.Lease) error {
			return c.store.Release(context.WithoutCancel(ctx), l)
		}
	})},
	{fault: "M23 the owner compared by the client, then a Renew by name", id: "late/renew", defect: &defect{byName: true}},
	{fault: "M06 a Release by GET and then DEL", id: "late/release", defect: badClient(func(c *client) {
		c.release = func(ctx context.Context, l backend.Lease) error {
			c.store.mu.Lock()
			looked := c.store.rows[l.Key].owner == l.Owner
			c.store.mu.Unlock()
			deliver := make(chan struct{})
			go func() {
				defer close(deliver)
				_ = c.Link.Release(context.WithoutCancel(ctx), l)
				if looked {
					c.store.delete(l.Key)
				}
			}()
			select {
			case <-deliver:
				return nil
			case <-ctx.Done():
				return &backend.Error{Op: "release", Key: l.Key, Err: ctx.Err()}
			}
		}
	})},
	{fault: "M10 M11 a term counted from the reply", id: "late/grant", defect: badClient(func(c *client) {
		c.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			got, err := c.Link.Acquire(ctx, l)
			got.Start = time.Now()
			return got, err
		}
	})},
}

// delete frees a key, whoever has it.
func (s *store) delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.rows[key]
	e.owner = ""
	s.rows[key] = e
}

var outageFaults = []planted{
	{fault: "M50 silence taken for contention", id: "pause/prompt", defect: badClient(func(c *client) {
		c.acquire = func(ctx context.Context, l backend.Lease) (backend.Lease, error) {
			got, err := c.Link.Acquire(ctx, l)
			if errors.Is(err, context.DeadlineExceeded) {
				err = errors.Join(err, backend.ErrHeld)
			}
			return got, err
		}
	})},
	{fault: "an end that nobody notices who slept", id: "pause/term", defect: &defect{sleepsForever: true}},
	{fault: "a minority that everybody waits for", id: "minority/verbs", defect: &defect{minority: true}},
	{fault: "a minority that brings back what was released", id: "minority/after", defect: &defect{healBringsBack: true}},
	{fault: "M04 leases that a crash forgets", id: "crash/holds", defect: &defect{crashForgets: true}},
	{fault: "releases that a crash forgets", id: "crash/released", defect: &defect{crashBringsBack: true}},
	{fault: "M24 a counter that a crash sets back", id: "crash/tokens", defect: &defect{crashResets: true, countsFromOne: true}},
	{fault: "M41 a counter that begins anew", id: "forget/tokens", defect: &defect{countsFromOne: true}},
	{fault: "M28 a Renew that re-creates what was lost", id: "forget/loss", defect: &defect{recreates: true}},
	{fault: "M18 tokens that are the clock", id: "clock/tokens", defect: &defect{clockTokens: true}},
	{fault: "M14 a term that any step of the clock ends", id: "clock/back", defect: &defect{endsFromBegin: true}},
}
