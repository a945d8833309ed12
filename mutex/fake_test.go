package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

const ms = time.Millisecond

var errLink = errors.New("link down")

// network is a backend behind a link that a test can make fail. It writes down
// every call. It hides the Waiter of what it wraps.
type network struct {
	inner backend.Backend

	// What happens to a call instead of being passed on; nil: nothing.
	acquire func(ctx context.Context, want backend.Lease) (backend.Lease, error)
	renew   func(ctx context.Context, held backend.Lease) error
	release func(ctx context.Context, held backend.Lease) error

	mu    sync.Mutex
	calls []call
}

type call struct {
	op    string
	lease backend.Lease
	at    time.Time
}

func newNetwork() *network { return &network{inner: memory.New(nil)} }

// note writes a call down and returns the verbs that the test has put in.
func (n *network) note(op string, l backend.Lease) *network {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, call{op, l, time.Now()})
	return &network{acquire: n.acquire, renew: n.renew, release: n.release}
}

// slowRelease has each Release take d before it is passed on.
func (n *network) slowRelease(d time.Duration) {
	n.release = func(ctx context.Context, held backend.Lease) error {
		time.Sleep(d)
		return n.inner.Release(ctx, held)
	}
}

// change lets a test change n while calls are made.
func (n *network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// all returns the calls of op, or of every verb.
func (n *network) all(op string) []call {
	n.mu.Lock()
	defer n.mu.Unlock()
	var some []call
	for _, c := range n.calls {
		if op == "" || c.op == op {
			some = append(some, c)
		}
	}
	return some
}

func (n *network) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	if now := n.note("acquire", want); now.acquire != nil {
		return now.acquire(ctx, want)
	}
	return n.inner.Acquire(ctx, want)
}

func (n *network) Renew(ctx context.Context, held backend.Lease) error {
	if now := n.note("renew", held); now.renew != nil {
		return now.renew(ctx, held)
	}
	return n.inner.Renew(ctx, held)
}

func (n *network) Release(ctx context.Context, held backend.Lease) error {
	if now := n.note("release", held); now.release != nil {
		return now.release(ctx, held)
	}
	return n.inner.Release(ctx, held)
}

// waiting is a network that offers Wait.
type waiting struct {
	*network
	wait func(ctx context.Context, want backend.Lease) (backend.Lease, error)
}

func (w *waiting) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	w.note("wait", want)
	return w.wait(ctx, want)
}

// silence never answers.
func silence(ctx context.Context, l backend.Lease) error {
	<-ctx.Done()
	return &backend.Error{Op: "call", Key: l.Key, Err: ctx.Err()}
}

func silentAcquire(ctx context.Context, l backend.Lease) (backend.Lease, error) {
	return backend.Lease{}, silence(ctx, l)
}

// bubble runs f with virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// newMutex makes a mutex of "k".
func newMutex(t *testing.T, b backend.Backend, o *mutex.Options) *mutex.Leased {
	t.Helper()
	m, err := mutex.New(b, "k", o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func hold(t *testing.T, m *mutex.Leased) *mutex.Hold {
	t.Helper()
	h, err := m.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// free fails the test if another client can't have "k" at once.
func free(t *testing.T, b backend.Backend) {
	t.Helper()
	l := backend.Lease{Key: "k", Owner: fmt.Sprint(time.Now(), "free"), TTL: time.Second, Start: time.Now()}
	if _, err := b.Acquire(t.Context(), l); err != nil {
		t.Errorf("the key is not free: %v", err)
		return
	}
	if err := b.Release(t.Context(), l); err != nil {
		t.Error(err)
	}
}

// steal gives "k" to another client, whoever holds it.
func steal(t *testing.T, b backend.Backend, owner string) backend.Lease {
	t.Helper()
	for {
		l := backend.Lease{Key: "k", Owner: "thief", TTL: time.Hour, Start: time.Now()}
		got, err := b.Acquire(t.Context(), l)
		if err == nil {
			return got
		}
		if err := b.Release(t.Context(), backend.Lease{Key: "k", Owner: owner, TTL: time.Hour, Start: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reason is why h was lost, or empty.
func reason(h *mutex.Hold) mutex.Reason {
	var lost *mutex.LostError
	if errors.As(h.Err(), &lost) {
		return lost.Reason
	}
	return ""
}

// wantErr fails the test unless err is all of want.
func wantErr(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error is %v; want one that is %v", err, w)
		}
	}
}

// wantNow fails the test unless d has passed since begin, to the nanosecond.
func wantNow(t *testing.T, begin time.Time, d time.Duration) {
	t.Helper()
	if got := time.Since(begin); got != d {
		t.Errorf("it took %v; want %v", got, d)
	}
}
