// Package quorum makes one Backend out of N independent ones: the Redlock
// algorithm (Redis documentation, "Distributed locks with Redis") with fencing
// tokens that are exact.
//
// A lease is held while more than half of the configured nodes hold it. All
// nodes are asked at once and nobody waits for the slowest: a verb answers as
// soon as a majority has agreed, or can't any more. What is still under way
// finishes behind it, in order, node by node.
package quorum

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/distmutex/distmutex/backend"
)

// Options of New; nil and zero values are good.
type Options struct {
	// NodeTimeout bounds one verb on one node, in the background: a majority
	// that answers is never kept waiting for it. A node silent for an eighth of
	// it is set aside. Zero: 1 s.
	NodeTimeout time.Duration

	// MaxInFlight bounds the verbs under way on one node; what comes on top
	// counts as not answered. Zero: 1024.
	MaxInFlight int

	// OnNode is told when a node is set aside, and when it is in use again. It
	// is called from many goroutines and delays the verb that it is called from.
	OnNode func(backend.NodeState)
}

// Identifier is what a node offers so that one server is not counted twice.
type Identifier interface {
	// Identity names the server behind the node: equal for two nodes only if
	// they reach the same one. Empty: it can't be told.
	Identity(ctx context.Context) (string, error)
}

// Backend is a quorum. It is a backend.Backend and a backend.Waiter.
type Backend struct {
	nodes []*node
	need  int // majority of the configured nodes
	born  time.Time
	opts  Options

	lanes  lanes
	grants grants
	places places
	calls  sync.WaitGroup // node calls under way
	door   singleflight.Group

	identities sync.Mutex  // held while the nodes' servers are compared
	open       atomic.Bool // the nodes have been seen to be different servers
}

// New returns the quorum of nodes, which should fail independently: three or
// five, as a rule. More than half of them must grant a lease.
func New(nodes []backend.Backend, o *Options) (*Backend, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	switch {
	case opts.NodeTimeout < 0:
		return nil, &backend.InvalidError{Field: "NodeTimeout", Reason: "is negative"}
	case opts.MaxInFlight < 0:
		return nil, &backend.InvalidError{Field: "MaxInFlight", Reason: "is negative"}
	}
	if opts.NodeTimeout == 0 {
		opts.NodeTimeout = time.Second
	}
	if opts.MaxInFlight == 0 {
		opts.MaxInFlight = 1024
	}
	if err := checkNodes(nodes); err != nil {
		return nil, err
	}
	q := &Backend{need: len(nodes)/2 + 1, born: time.Now(), opts: opts}
	q.lanes.nodes = len(nodes)
	for i, b := range nodes {
		q.nodes = append(q.nodes, newNode(q, i, b))
	}
	return q, nil
}

func checkNodes(nodes []backend.Backend) error {
	if len(nodes) == 0 {
		return &backend.InvalidError{Field: "nodes", Reason: "has no node"}
	}
	for i, a := range nodes {
		if a == nil {
			return &backend.InvalidError{Field: "nodes", Reason: fmt.Sprintf("has a nil node at %d", i)}
		}
		for j, b := range nodes[:i] {
			if reflect.TypeOf(a).Comparable() && a == b {
				return &backend.InvalidError{Field: "nodes", Reason: fmt.Sprintf("has one node twice, at %d and %d", j, i)}
			}
		}
	}
	return nil
}

// Close waits until nothing of this quorum is under way any more, or until ctx
// ends. It closes no node, and nothing may be called after it.
func (q *Backend) Close(ctx context.Context) error {
	for _, n := range q.nodes {
		n.close()
	}
	done := make(chan struct{})
	go func() {
		q.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("closing a quorum: calls are still under way: %w", ctx.Err())
	}
}

// vote is one node's answer to one call.
type vote struct {
	node  int
	lease backend.Lease // the grant, if any
	err   error
}

// votes collects the answers to one verb. Nobody reads once over is closed.
type votes struct {
	in   chan vote
	over chan struct{}
	won  atomic.Bool // set before over is closed
}

func newVotes(nodes int) *votes {
	return &votes{in: make(chan vote, nodes), over: make(chan struct{})}
}

func (v *votes) cast(x vote) {
	select {
	case v.in <- x:
	case <-v.over:
	}
}

// close ends the vote.
func (v *votes) close(won bool) {
	v.won.Store(won)
	close(v.over)
}

// failed says that the verb has ended without success.
func (v *votes) failed() bool {
	select {
	case <-v.over:
		return !v.won.Load()
	default:
		return false
	}
}
