package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

// Quorum keeps each lease on a majority of independent servers. It is a
// backend.Backend and a backend.Waiter; see package quorum for how it counts.
type Quorum struct {
	*quorum.Backend
	nodes []*Backend
}

// NewQuorum returns a quorum of the servers that clients reach: three or five,
// as a rule, that fail independently and replicate nothing. It sends nothing
// itself, and leaves the clients open on Close.
//
// Bad input is a *backend.InvalidError: no client, a nil one, two for one
// address, Plain without Unguarded. Two addresses that turn out to be one server are refused by the
// first Acquire, before anything is written.
func NewQuorum(clients []goredis.UniversalClient, o *Options) (*Quorum, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	queues := !opts.Unordered
	opts.Unordered = true // a line on each would have heads of its own
	nodes, err := nodesOf(clients, &opts)
	if err != nil {
		return nil, err
	}
	switch {
	case opts.Plain && !opts.Unguarded:
		return nil, &backend.InvalidError{Field: "Plain", Reason: "leaves servers unguarded, so Unguarded has to be set as well"}
	case !opts.Unguarded:
		guardAll(nodes, opts.Durable)
		for _, b := range nodes {
			b.queues = queues && b.batch != nil
		}
	}
	var members []backend.Backend
	for _, b := range nodes {
		if opts.Node != nil {
			members = append(members, opts.Node(b))
		} else {
			members = append(members, b)
		}
	}
	opts.Quorum.OnNode = nodes[0].logNode(opts.Quorum.OnNode)
	q, err := quorum.New(members, &opts.Quorum)
	if err != nil {
		return nil, err
	}
	return &Quorum{q, nodes}, nil
}

func nodesOf(clients []goredis.UniversalClient, o *Options) ([]*Backend, error) {
	if len(clients) == 0 {
		return nil, &backend.InvalidError{Field: "clients", Reason: "is empty"}
	}
	var nodes []*Backend
	seen := make(map[string]int)
	for i, c := range clients {
		if isNil(c) {
			return nil, &backend.InvalidError{Field: "clients", Reason: fmt.Sprintf("has a nil client at %d", i)}
		}
		b, err := New(c, o)
		if err != nil {
			return nil, err
		}
		if first, twice := seen[b.name]; twice && b.single() {
			return nil, &backend.InvalidError{Field: "clients", Reason: fmt.Sprintf("has %s twice, at %d and %d", b.name, first, i)}
		}
		seen[b.name] = i
		nodes = append(nodes, b)
	}
	return nodes, nil
}

// logNode logs what OnNode is told, and tells next if there is one.
func (b *Backend) logNode(next func(backend.NodeState)) func(backend.NodeState) {
	return func(s backend.NodeState) {
		if s.Aside {
			b.log.Warn("distmutex: a lock server is set aside", "server", s.Name, "error", s.Err)
		} else {
			b.log.Info("distmutex: a lock server is in use again", "server", s.Name)
		}
		if next != nil {
			next(s)
		}
	}
}

// single says that the client reaches one server, whose address is its name.
func (b *Backend) single() bool {
	c, ok := b.client.(*goredis.Client)
	return ok && c.Options().Addr != failoverAddr
}

// Close waits until ctx ends for what is under way, then closes every node as
// Backend.Close does.
func (q *Quorum) Close(ctx context.Context) error {
	errs := []error{q.Backend.Close(ctx)}
	for _, b := range q.nodes {
		errs = append(errs, b.Close(ctx))
	}
	return errors.Join(errs...)
}

// openQuorum makes a quorum of clients of ours.
func openQuorum(ctx context.Context, clients []goredis.UniversalClient, o *Options) (*Quorum, error) {
	q, err := NewQuorum(clients, o)
	if err != nil {
		return nil, err
	}
	for _, b := range q.nodes {
		b.owned = true
	}
	greets := make(chan error, len(q.nodes))
	for _, b := range q.nodes {
		go func() { greets <- b.greet(ctx) }()
	}
	var errs []error
	for range q.nodes {
		errs = append(errs, <-greets)
	}
	return q, errors.Join(errs...)
}
