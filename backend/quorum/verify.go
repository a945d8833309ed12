package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// acquire asks the node, once it is known which server that is.
func (n *node) acquire(ctx context.Context, want backend.Lease, forced bool) (got backend.Lease, err error) {
	if err := n.verify(ctx, want.Key, forced); err != nil {
		return got, err
	}
	err = n.call(ctx, "acquire", want.Key, forced, func(ctx context.Context) (err error) {
		got, err = n.b.Acquire(ctx, want)
		return err
	})
	if isAnswer(err) {
		n.setDoubt(want.Owner, false)
	}
	if err == nil && got.Token < want.Token {
		err = n.wrap("acquire", want.Key, fmt.Errorf("it does not keep tokens: %d for at least %d", got.Token, want.Token))
	}
	return got, err
}

// verify asks the node for its server's identity, at first and after every
// failure, since an address may lead to another server then.
func (n *node) verify(ctx context.Context, key string, forced bool) error {
	asked, ok := backend.As[Identifier](n.b)
	n.mu.Lock()
	verified := n.verified
	n.mu.Unlock()
	if !ok || verified {
		return nil
	}
	var id string
	err := n.call(ctx, "acquire", key, forced, func(ctx context.Context) (err error) {
		id, err = asked.Identity(ctx)
		return err
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.identity = id
	n.mu.Unlock()
	if twin := n.q.twin(n, id); twin != nil {
		return n.wrap("acquire", key, &backend.InvalidError{
			Field: "nodes", Reason: fmt.Sprintf("has one server twice: %s and %s", twin.name, n.name),
		})
	}
	n.mu.Lock()
	n.verified = true
	n.mu.Unlock()
	return nil
}

// twin is an earlier node that reaches the same server. A later one is asked
// again before it counts.
func (q *Backend) twin(n *node, id string) *node {
	if id == "" {
		return nil
	}
	for _, other := range q.nodes {
		other.mu.Lock()
		same := other != n && other.identity == id
		if same && other.index > n.index {
			other.verified = false
		}
		other.mu.Unlock()
		if same && other.index < n.index {
			return other
		}
	}
	return nil
}

// differ refuses a quorum in which two nodes are one server, before anything
// else is sent. It waits for all nodes the first time; one that does not answer
// is verified when it does.
func (q *Backend) differ(ctx context.Context) error {
	if q.open.Load() {
		return nil
	}
	seen := q.door.DoChan("", func() (any, error) { return nil, q.verifyAll(context.WithoutCancel(ctx)) })
	select {
	case r := <-seen:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *Backend) verifyAll(ctx context.Context) error {
	errs := make(chan error, len(q.nodes))
	for _, n := range q.nodes {
		q.calls.Go(func() { errs <- n.verify(ctx, "", true) })
	}
	var twice error
	for range q.nodes {
		var invalid *backend.InvalidError
		if err := <-errs; errors.As(err, &invalid) {
			twice = invalid
		}
	}
	q.open.Store(twice == nil)
	return twice
}

// fewAnswer says that fewer than a majority of the nodes are in use, so that
// those set aside are asked as well.
func (q *Backend) fewAnswer() bool {
	now, used := time.Now(), 0
	for _, n := range q.nodes {
		if !n.isAside(now) {
			used++
		}
	}
	return used < q.need
}

func (q *Backend) all() []int {
	all := make([]int, len(q.nodes))
	for i := range all {
		all[i] = i
	}
	return all
}

// failed names the key in an error that is not a node's.
func (q *Backend) failed(op, key string, err error) error {
	if isInvalid(err) {
		return err
	}
	return &backend.Error{Op: op, Key: key, Err: err}
}
