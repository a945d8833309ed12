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

// await runs f and returns with it, or when ctx ends: f then goes on, and leave,
// if any, gets the channel that is closed when f has returned.
func await[T any](ctx context.Context, c *calls, f func() (T, error), leave func(<-chan struct{})) (v T, err error) {
	if err := c.begin(); err != nil {
		return v, err
	}
	if ctx.Done() == nil {
		defer c.wg.Done()
		return f()
	}
	var got struct {
		v   T
		err error
	}
	done := make(chan struct{})
	go func() {
		defer c.wg.Done()
		defer close(done)
		got.v, got.err = f()
	}()
	if ctx.Err() == nil {
		select {
		case <-done:
			return got.v, got.err
		case <-ctx.Done():
		}
	}
	if leave != nil {
		leave(done)
	}
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
	forget *time.Timer
}

// edit changes an owner's lane, which lasts until Release or until whatever is
// on its way can't be any more.
func (ls *lanes) edit(l backend.Lease, life time.Duration, change func(*lane)) {
	id := laneID{l.Key, l.Owner}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.m[id]
	if ln == nil {
		ln = new(lane)
		ln.forget = time.AfterFunc(life, func() { ls.remove(id, ln) })
		if ls.m == nil {
			ls.m = make(map[laneID]*lane)
		}
		ls.m[id] = ln
	} else {
		ln.forget.Reset(life)
	}
	change(ln)
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
func (ls *lanes) drop(l backend.Lease) { ls.remove(laneID{l.Key, l.Owner}, nil) }

func (ls *lanes) remove(id laneID, only *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ln := ls.m[id]; ln != nil && (only == nil || ln == only) {
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
