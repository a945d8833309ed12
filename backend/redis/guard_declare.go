package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// ErrNotNew is what DeclareNew answers about servers that are in use.
var ErrNotNew = errors.New("it is not new")

// guardAll puts the nodes of one quorum under guard.
func guardAll(nodes []*Backend, durable bool) {
	f := newFleet(len(nodes), nodes[0].maxTTL)
	for _, b := range nodes {
		b.guard = &guard{b: b, fleet: f, durable: durable}
	}
}

// Clock is how far the server's clock is ahead of this process's monotonic one,
// for package quorum. It is known of the guarded nodes of a quorum.
func (b *Backend) Clock() (ahead, within time.Duration, ok bool) {
	if b.guard == nil {
		return 0, 0, false
	}
	return b.guard.clockAhead()
}

// DeclareNew is the operator's word that the servers are new: none has ever
// held a lock. They count at once then, and not only after what may have been
// forgotten has ended (MaxTTL and a little more than 2 s).
//
// It is for once in a quorum's life. All servers must answer, and hold no key at
// all, or it fails and names those that don't, before anything is written; the
// error is ErrNotNew if all answered. An unguarded quorum has no use for it: nil.
func (q *Quorum) DeclareNew(ctx context.Context) error {
	for _, step := range []func(*guard, context.Context) error{(*guard).isNew, (*guard).declare} {
		var errs []error
		for _, b := range q.nodes {
			if b.guard == nil {
				return nil
			}
			_, err := await(ctx, &b.calls, nil, func() (struct{}, error) { return struct{}{}, step(b.guard, quiet{ctx}) })
			if err != nil {
				errs = append(errs, fmt.Errorf("declare %s new: %w", b.name, cause(ctx, err)))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// isNew says, by an error, why the server can't be new.
func (g *guard) isNew(ctx context.Context) error {
	return g.onConn(ctx, func(conn *goredis.Tx) error {
		s, err := g.see(ctx, conn)
		if err != nil || s.runID == "" {
			return err
		}
		keys, err := conn.DBSize(ctx).Result()
		switch {
		case err != nil:
			return err
		case s.text != "":
			return fmt.Errorf("%w: it has been declared or used", ErrNotNew)
		case keys > 0:
			return fmt.Errorf("%w: it has %d keys", ErrNotNew, keys)
		}
		return nil
	})
}

// declare writes the marker of a server that never forgot anything.
func (g *guard) declare(ctx context.Context) error {
	return g.onConn(ctx, func(conn *goredis.Tx) error {
		s, err := g.see(ctx, conn)
		if err != nil || s.runID == "" {
			return err
		}
		m := s.bornAt(time.Time{}, time.Time{})
		m.maxTTL = g.b.maxTTL
		status, err := statusOf(conn.Eval(ctx, markerLua, []string{markerKey}, "", m.String(), flag(true)))
		if err == nil && status != yes {
			err = fmt.Errorf("%w: somebody came first", ErrNotNew)
		}
		return err
	})
}
