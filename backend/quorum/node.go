package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// misses is how many calls in a row may fail before a node is set aside.
const misses = 3

// node is one member and what is known of its health.
//
// A node that does not answer is set aside: it is asked only once an interval,
// which is the probe, and counts as not answering in between. So a frozen node
// costs neither time nor goroutines nor connections.
type node struct {
	q      *Backend
	index  int
	name   string
	b      backend.Backend
	clock  Clock  // nil: it tells nothing of its clock
	queuer Queuer // nil: it wakes all who wait

	mu        sync.Mutex
	inFlight  int
	missed    int       // failed calls since the last answer
	silent    time.Time // since when a call has been waiting and none was answered; zero: not
	probing   bool      // a call was let through although the node is set aside
	probed    time.Time // when that was last done
	told      bool      // OnNode knows that it is set aside
	changed   bool      // OnNode is to be told that it is not as it knows
	last      error     // the last failure
	identity  string    // of the server, once known
	verified  bool      // identity was asked for since the last failure
	unnamed   int       // how often in a row it failed to say who it is: it is not asked to grant then
	nameless  error     // the last such failure
	uncounted error     // why its answers to Acquire do not count; nil: they do
	owed      debts
	doubt     map[string]struct{} // owners whose acquire was sent and not answered
}

func newNode(q *Backend, index int, b backend.Backend) *node {
	n := &node{q: q, index: index, name: fmt.Sprintf("node %d", index), b: b}
	if named, ok := backend.As[interface{ Name() string }](b); ok {
		n.name = named.Name()
	}
	n.clock, _ = backend.As[Clock](b)
	n.queuer, _ = backend.As[Queuer](b)
	return n
}

var errBusy = errors.New("too many calls under way")

// asideError answers for a node that was not asked.
type asideError struct{ last error }

func (e *asideError) Error() string {
	if e.last == nil {
		return "set aside: it does not answer"
	}
	return fmt.Sprintf("set aside: %v", e.last)
}

func (e *asideError) Unwrap() error { return e.last }

// silenceError is a time-out of ours: never to be taken for the caller's
// deadline, which is why it is not context.DeadlineExceeded.
type silenceError struct{ after time.Duration }

func (e *silenceError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }
func (e *silenceError) Timeout() bool { return true }

// isAside says whether the node is set aside.
func (n *node) isAside(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asideLocked(now)
}

// isOfUse says whether the node is not set aside and its answers count.
func (n *node) isOfUse(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.usefulLocked(now)
}

func (n *node) usefulLocked(now time.Time) bool { return n.fitLocked() && !n.asideLocked(now) }

// fitLocked says whether what the node answers to Acquire counts, once it does.
func (n *node) fitLocked() bool { return n.uncounted == nil && n.unnamed < misses }

func (n *node) asideLocked(now time.Time) bool {
	return n.missed >= misses || !n.silent.IsZero() && now.Sub(n.silent) > n.q.suspicion()
}

// unlock unlocks mu and tells OnNode what changed.
func (n *node) unlock() {
	changed := n.changed && n.q.opts.OnNode != nil
	if changed {
		n.told = !n.told
	}
	n.changed = false
	state := backend.NodeState{Name: n.name, Aside: n.told, Err: n.last}
	if n.told && state.Err == nil {
		state.Err = cmp.Or(n.uncounted, n.nameless)
	}
	n.mu.Unlock()
	if changed {
		n.q.opts.OnNode(state)
	}
}

// suspicion is how long a node may be silent before it is set aside, and how
// often it is probed then.
func (q *Backend) suspicion() time.Duration { return q.opts.NodeTimeout / 8 }

// admit decides whether the node is asked at all. To a node set aside one call
// at a time is let through, the probe, and once an interval. Forced calls go
// to it too: too few others are left.
func (n *node) admit(op, key string, forced bool) (probe bool, err error) {
	now := time.Now()
	n.mu.Lock()
	defer n.unlock()
	aside := n.asideLocked(now)
	n.changed = aside && !n.told
	if forced || !aside {
		return false, nil
	}
	if n.probing || now.Sub(n.probed) < n.q.suspicion() {
		return false, &backend.Error{Op: op, Key: key, Node: n.name, Err: &asideError{n.last}}
	}
	n.probing, n.probed = true, now
	return true, nil
}

// endProbe lets the next probe through, if this call was one. It comes before
// the call's vote: whoever acts on that may ask the node again.
func (n *node) endProbe(probe bool) {
	if !probe {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.probing = false
}

// begin counts a call in. It asks again whether the node is set aside: calls
// may have waited for their turn meanwhile.
func (n *node) begin(forced bool) error {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.inFlight >= n.q.opts.MaxInFlight:
		return errBusy
	case !forced && n.asideLocked(now):
		return &asideError{n.last}
	}
	n.inFlight++
	if n.silent.IsZero() {
		n.silent = now
	}
	return nil
}

// doubtLocked notes that the node may grant to owner without our knowing.
func (n *node) doubtLocked(owner string) {
	if n.doubt == nil {
		n.doubt = make(map[string]struct{})
	}
	n.doubt[owner] = struct{}{}
}

func (n *node) setDoubt(owner string, doubtful bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if doubtful {
		n.doubtLocked(owner)
	} else {
		delete(n.doubt, owner)
	}
}

// settle records how a call ended and returns its error, naming the node.
func (n *node) settle(ctx context.Context, op, key string, err error) error {
	answered := isAnswer(err)
	silent := ctx.Err() != nil
	if !answered && silent {
		err = &silenceError{n.q.opts.NodeTimeout}
	}
	err = n.wrap(op, key, err)
	n.mu.Lock()
	defer n.unlock()
	n.inFlight--
	switch {
	case answered:
		n.changed = n.told && n.fitLocked()
		n.missed, n.silent, n.last = 0, time.Time{}, nil
		if n.inFlight > 0 {
			n.silent = time.Now()
		}
		n.dueLocked()
	case silent:
		// Still silent: whatever is let through next is a probe.
		n.missed, n.last, n.verified = n.missed+1, err, false
	default:
		n.missed, n.silent, n.last, n.verified = n.missed+1, time.Time{}, err, false
		if n.inFlight > 0 {
			n.silent = time.Now()
		}
	}
	return err
}

// wrap names the node in an error that does not.
func (n *node) wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	var e *backend.Error
	if errors.As(err, &e) && e.Node != "" {
		return err
	}
	if e != nil {
		err = e.Err
	}
	return &backend.Error{Op: op, Key: key, Node: n.name, Err: err}
}

// isAnswer says whether the outcome is known.
func isAnswer(err error) bool {
	return err == nil || errors.Is(err, backend.ErrHeld) || errors.Is(err, backend.ErrLost) || isInvalid(err) || isUncounted(err)
}

func isInvalid(err error) bool {
	var e *backend.InvalidError
	return errors.As(err, &e)
}

// call runs one verb on the node, bounded by the node's time-out and by nothing
// else: a caller that goes away does not cut short what others must clean up.
func (n *node) call(ctx context.Context, op, key string, forced bool, verb func(ctx context.Context) error) error {
	if err := n.begin(forced); err != nil {
		return n.wrap(op, key, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.q.opts.NodeTimeout)
	defer cancel()
	return n.settle(ctx, op, key, verb(ctx))
}
