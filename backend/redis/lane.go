package redis

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
)

// calls counts what is on its way, for Close.
type calls struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func (c *calls) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return goredis.ErrClosed
	}
	c.wg.Add(1)
	return nil
}

// close lets no more calls begin. The channel is closed when the last has ended.
func (c *calls) close() <-chan struct{} {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() { c.wg.Wait(); close(ended) }()
	return ended
}

// quiet is a context without its deadline: go-redis would answer a deadline by
// throwing the connection away, and whatever is still on it would then arrive
// out of order. Its end still calls back what has not been sent.
type quiet struct{ context.Context }

func (quiet) Deadline() (time.Time, bool) { return time.Time{}, false }

// await runs f and returns with it, or when ctx ends: f then goes on, and t, which
// may be nil, keeps its place.
func await[T any](ctx context.Context, c *calls, t *turn, f func() (T, error)) (v T, err error) {
	if err := c.begin(); err != nil {
		return v, err
	}
	var got struct {
		v   T
		err error
	}
	done := make(chan struct{})
	run := func() {
		defer c.wg.Done()
		got.v, got.err = f()
		t.end(done, got.err)
	}
	if ctx.Done() == nil {
		run()
		return got.v, got.err
	}
	go run()
	if ctx.Err() == nil {
		select {
		case <-done:
			return got.v, got.err
		case <-ctx.Done():
		}
	}
	t.leave(done)
	return v, ctx.Err()
}

// lanes keeps what belongs to one owner in order where a call was left behind,
// or may have left something on the network. Nobody else has an entry.
type lanes struct {
	mu sync.Mutex
	m  map[laneID]*lane
}

type laneID struct{ key, owner string }

type lane struct {
	last   <-chan struct{} // closed when what was left behind last has ended
	doubt  bool            // an acquire of this owner may still reach the server
	spent  bool            // a release may, and nothing was heard of it
	brief  time.Duration   // a renewal for this long may, and would shorten a longer term; zero: none
	forget *time.Timer
}

// turn is a call's place in its owner's lane.
type turn struct {
	lanes *lanes
	lease backend.Lease
	life  time.Duration // of the lane, if the call is left behind
	final bool          // success ends the lane
}

// leave notes that the call was left behind, unless it has ended.
func (t *turn) leave(done <-chan struct{}) {
	if t == nil {
		return
	}
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	select {
	case <-done:
	default:
		t.lanes.enter(t.lease, t.life).last = done
	}
}

// end closes done, and the lane in the same moment: who leaves the call behind
// notes it before, or not at all.
func (t *turn) end(done chan<- struct{}, err error) {
	if t != nil && t.final && err == nil {
		t.lanes.mu.Lock()
		defer t.lanes.mu.Unlock()
		t.lanes.remove(t.lease)
	}
	close(done)
}

// suspect notes that an acquire of this owner may still reach the server.
func (ls *lanes) suspect(l backend.Lease, life time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.enter(l, life).doubt = true
}

// spend notes that a release may still reach the server: what it would take is
// not to be had in between.
func (ls *lanes) spend(l backend.Lease, life time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.enter(l, life).spent = true
}

// bars says what keeps a call from being sent: a release that may still come, or
// something that would shorten the term of l.
func (ls *lanes) bars(l backend.Lease) (spent, brief bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.m[laneID{l.Key, l.Owner}]
	if ln == nil {
		return false, false
	}
	return ln.spent, ln.brief > 0 && ln.brief < l.TTL
}

// enter is the owner's lane, which lasts until Release or until whatever is on
// its way can't be any more. ls.mu is held.
func (ls *lanes) enter(l backend.Lease, life time.Duration) *lane {
	id := laneID{l.Key, l.Owner}
	ln := ls.m[id]
	if ln != nil {
		ln.forget.Reset(life)
		return ln
	}
	ln = new(lane)
	ln.forget = time.AfterFunc(life, func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if ls.m[id] == ln {
			delete(ls.m, id)
		}
	})
	if ls.m == nil {
		ls.m = make(map[laneID]*lane)
	}
	ls.m[id] = ln
	return ln
}

// get is the state of an owner's lane; zero if it has none.
func (ls *lanes) get(l backend.Lease) (last <-chan struct{}, doubt bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ln := ls.m[laneID{l.Key, l.Owner}]; ln != nil {
		return ln.last, ln.doubt
	}
	return nil, false
}

// drop ends an owner's lane.
func (ls *lanes) drop(l backend.Lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.remove(l)
}

// remove is called with ls.mu held.
func (ls *lanes) remove(l backend.Lease) {
	id := laneID{l.Key, l.Owner}
	if ln := ls.m[id]; ln != nil {
		ln.forget.Stop()
		delete(ls.m, id)
	}
}

func (ls *lanes) clear() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, ln := range ls.m {
		ln.forget.Stop()
	}
	clear(ls.m)
}
