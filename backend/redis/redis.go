// Package redis keeps leases on a Redis or Valkey server (Redis 6.2 or newer).
//
// A lock is an ordinary string at the key itself: the owner, with an expiry. So
// it excludes, and is excluded by, every client that follows the Redis
// documentation's "Distributed locks with Redis", in any language. What else is
// kept on the server, doc/wire.md lists.
//
// One server is as reliable as that server: a restart without its data, a
// failover to a replica or an evicted key ends a hold unseen, and only a
// resource that checks tokens is safe then. [NewQuorum] keeps each lease on a
// majority of several servers.
package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

// Options tune a Backend. Nil and the zero value are good defaults.
type Options struct {
	// MaxTTL bounds the term of every lease; a longer one is refused. Zero means
	// 30 s. All clients of a server should agree on it: it is also the measure of
	// how far a client's clock may move a token (a quarter of it), and of how long
	// what may be left of a lease has to be reckoned with.
	MaxTTL time.Duration

	// Plain sends no scripts and keeps nothing but the lock: SET … NX PX as on the
	// page "Distributed locks with Redis", for servers that forbid EVAL. Renew and
	// Release compare on the server all the same: by a native command where there
	// is one, else by WATCH, MULTI and EXEC, in three round trips.
	//
	// It gives no tokens (fencing.Middleware does), so a Release can't tell a
	// loss, and an Acquire for a token above zero is refused. And it has no
	// tombstones: an acquire that reaches the server after its Release leaves a
	// key that nobody holds, until its term ends.
	Plain bool

	// Unordered wakes all who wait for a lock when it is released, and the fastest
	// gets it. That is a little less work for the server where nobody waits, and
	// much more where many do. It is always so for clusters, Rings and primaries
	// behind sentinels, for a quorum that is Unguarded, and with Plain.
	Unordered bool

	// Logger gets the few things that no call returns: a server that may evict
	// locks, wake-ups that can't be subscribed to, a node of a quorum that is set
	// aside or in use again. Nil means slog.Default().
	Logger *slog.Logger

	// Quorum is for NewQuorum, and for Open with several URLs. Node, if set, is a
	// layer around each node then, to measure it say.
	Quorum quorum.Options
	Node   backend.Middleware

	// A server of a quorum that may have forgotten locks (it restarted, was
	// emptied or replaced by another, or its clock ran ahead) does not count
	// until they have ended: for MaxTTL and a little more than 2 s, see
	// quorum.UncountedError. That takes Redis 7 or newer, or Valkey. Unguarded
	// counts a server at once, and two may hold a lock then.
	//
	// Durable is the operator's word that every server has its writes on disk
	// before it answers (appendonly yes, appendfsync always), has no replicas,
	// and never starts from an older copy. Then a restart forgets nothing, and
	// the server counts at once.
	Unguarded bool
	Durable   bool
}

const defaultMaxTTL = 30 * time.Second

// Backend keeps leases on what one client reaches: a server, a primary behind
// sentinels, or a cluster. It is a backend.Backend and a backend.Waiter; its
// methods may be called at the same time.
//
// Any settings of the client will do. A client that sends a command again by
// itself, or ignores the end of a context, changes no answer: calls return when
// their context ends, and what they leave behind finishes in the background,
// within the client's own time-outs and on no more connections than its pool
// has.
type Backend struct {
	client goredis.UniversalClient
	name   string
	maxTTL time.Duration
	log    *slog.Logger
	owned  bool   // Open made the client
	guard  *guard // nil: not guarded
	plain  bool
	native native
	batch  *batch // nil: the client reaches several servers

	ordered bool // who waits stands in a line on the server
	queues  bool // or in a queue, on this node of a quorum
	places  places
	calls   calls
	lanes   lanes
	hub     *hub
	shards  shardHubs
	advised atomic.Bool
	closing sync.Once
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Waiter  = (*Backend)(nil)
)

// New returns a Backend that sends through client. It sends nothing itself, and
// leaves the client open on Close.
//
// A nil client or options out of bounds are a *backend.InvalidError.
func New(client goredis.UniversalClient, o *Options) (*Backend, error) {
	if isNil(client) {
		return nil, &backend.InvalidError{Field: "client", Reason: "is nil"}
	}
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxTTL == 0 {
		opts.MaxTTL = defaultMaxTTL
	}
	if err := backend.ValidateTTL(opts.MaxTTL); err != nil {
		return nil, &backend.InvalidError{Field: "MaxTTL", Reason: reason(err)}
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	b := &Backend{client: client, name: nameOf(client), maxTTL: opts.MaxTTL, log: opts.Logger, plain: opts.Plain}
	if c, one := client.(*goredis.Client); one {
		b.batch = &batch{client: c}
		b.ordered = !opts.Plain && !opts.Unordered
	}
	b.hub = newHub(b)
	return b, nil
}

// Name is the server's address, for errors and logs. It never has a password.
func (b *Backend) Name() string { return b.name }

// Close wakes those who wait, with an error that wraps goredis.ErrClosed, ends
// the subscription, and waits until ctx ends for the calls still on their way: from
// a server that never answers, that is for the client's own time-outs.
// It closes the client if Open made it. A second Close does nothing.
func (b *Backend) Close(ctx context.Context) (err error) {
	b.closing.Do(func() {
		ended := b.calls.close()
		b.closeHubs()
		b.lanes.clear()
		select {
		case <-ended:
		case <-ctx.Done():
			err = fmt.Errorf("close %s: calls are still on their way: %w", b.name, ctx.Err())
		}
		if b.owned {
			err = errors.Join(err, b.client.Close())
		}
	})
	return err
}

// isNil sees a nil *Client in the interface too.
func isNil(client goredis.UniversalClient) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func nameOf(client goredis.UniversalClient) string {
	switch c := client.(type) {
	case *goredis.Client:
		return c.Options().Addr
	case *goredis.ClusterClient:
		return strings.Join(c.Options().Addrs, ",")
	case *goredis.Ring:
		return strings.Join(slices.Sorted(maps.Values(c.Options().Addrs)), ",")
	case failover:
		return c.name
	}
	return "redis"
}

// check refuses what is not sent.
func (b *Backend) check(l backend.Lease) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if l.TTL > b.maxTTL {
		return &backend.InvalidError{Field: "TTL", Reason: fmt.Sprintf("is %v, more than this backend's MaxTTL of %v", l.TTL, b.maxTTL)}
	}
	return nil
}

// fail says which verb, key and server an error is about.
func (b *Backend) fail(ctx context.Context, op, key string, err error) error {
	return &backend.Error{Op: op, Key: key, Node: b.name, Err: cause(ctx, err)}
}

// cause makes a context's error the caller's own or none: go-redis wraps one in
// a time-out of its own, which must not pass for the caller's deadline.
func cause(ctx context.Context, err error) error {
	switch {
	case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &timeoutError{err}
}

// timeoutError hides from errors.Is whose time-out it was.
type timeoutError struct{ err error }

func (e *timeoutError) Error() string { return e.err.Error() }
func (e *timeoutError) Timeout() bool { return true }

func reason(err error) string {
	var e *backend.InvalidError
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}
