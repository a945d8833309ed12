package quorum

import (
	"context"
	"fmt"
	"sync"
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
	if e := n.judge(err); e != err {
		err = n.wrap("acquire", want.Key, e)
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
		n.named(err)
		return err
	})
	if err != nil {
		return err
	}
	if err := n.q.identify(n, id); err != nil {
		return n.wrap("acquire", key, err)
	}
	return nil
}

// named records whether the node said who it is, for OnNode: its answers to other
// verbs do not make up for that.
func (n *node) named(err error) {
	n.mu.Lock()
	defer n.unlock()
	n.nameless = err
	if err == nil {
		n.unnamed = 0
	} else {
		n.unnamed++
	}
	n.changed = n.told == n.usefulLocked(time.Now())
}

// identify notes which server the node reaches. Of two that reach the same one,
// the later does not count; if it was there first, it is asked again.
func (q *Backend) identify(n *node, id string) error {
	q.identities.Lock()
	defer q.identities.Unlock()
	n.setIdentity(id, false)
	if err := q.twin(n); err != nil {
		return err
	}
	n.setIdentity(id, true)
	for _, later := range q.nodes[n.index+1:] {
		if id != "" && later.server() == id {
			later.setIdentity(id, false)
		}
	}
	return nil
}

// twin is the error of a node whose server an earlier one reaches already.
func (q *Backend) twin(n *node) error {
	id := n.server()
	for _, earlier := range q.nodes[:n.index] {
		if id != "" && earlier.server() == id {
			return &backend.InvalidError{Field: "nodes", Reason: fmt.Sprintf("has one server twice: %s and %s", earlier.name, n.name)}
		}
	}
	return nil
}

func (n *node) server() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.identity
}

func (n *node) setIdentity(id string, verified bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.identity, n.verified = id, verified
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
	var all sync.WaitGroup
	for _, n := range q.nodes {
		q.calls.Add(1)
		all.Go(func() {
			defer q.calls.Done()
			_ = n.verify(ctx, "", true) // one that does not answer is verified when it does
		})
	}
	all.Wait()
	for _, n := range q.nodes {
		if err := q.twin(n); err != nil {
			return err
		}
	}
	q.open.Store(true)
	return nil
}

// fewAnswer says that fewer than a majority of the nodes are in use and count, so
// that those set aside are asked as well.
func (q *Backend) fewAnswer() bool {
	now, used := time.Now(), 0
	for _, n := range q.nodes {
		if n.isOfUse(now) {
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
