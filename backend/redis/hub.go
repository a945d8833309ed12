package redis

import (
	"context"
	crand "crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// beat is how often the hub looks after itself: it drops channels on which
// nobody has waited for a whole beat, and a connection that was silent for one
// although it was asked to answer.
const beat = 3 * time.Second

// hub is the one connection on which the wake-ups of a Backend arrive. It stands
// while somebody waits and a moment longer, and has two goroutines then.
type hub struct {
	client goredis.UniversalClient
	name   string
	inbox  string          // the channel on which this hub alone hears
	gone   func(id uint64) // called with mu held: a waiter that has gone was passed a lock
	log    *slog.Logger
	beat   time.Duration
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	kick   chan struct{} // there are channels to subscribe to
	told   atomic.Bool   // the log has it that wake-ups fail

	mu      sync.Mutex
	topics  map[string]*topic
	joined  uint64 // waiters so far
	running bool
}

// topic is a channel and who waits for it.
type topic struct {
	waiters map[uint64]*waiter
	asked   bool // a subscription was sent on this connection
	live    bool // and confirmed, and the connection has not failed since
	idle    bool // nobody waited at the last beat, nor since
}

func newHub(b *Backend) *hub {
	h := &hub{client: b.client, name: b.name, log: b.log, beat: beat, kick: make(chan struct{}, 1), topics: make(map[string]*topic)}
	h.inbox, h.gone = inboxPrefix+crand.Text(), b.decline
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// close wakes all waiters and returns when both goroutines have ended.
func (h *hub) close() {
	h.mu.Lock()
	h.cancel()
	h.mu.Unlock()
	h.wg.Wait()
}

// join makes a waiter that is woken by what comes on the channel; one in a queue by
// what is for its ticket or for all.
func (h *hub) join(channel, ticket string) (*waiter, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return nil, goredis.ErrClosed
	}
	t := h.topics[channel]
	if t == nil {
		t = &topic{waiters: make(map[uint64]*waiter)}
		h.topics[channel] = t
		select {
		case h.kick <- struct{}{}:
		default:
		}
	}
	h.joined++
	w := &waiter{hub: h, topic: t, id: h.joined, ticket: ticket, woken: make(chan struct{}, 1)}
	t.waiters[w.id] = w
	if !h.running {
		h.running = true
		h.wg.Go(h.run)
	}
	return w, nil
}

// run keeps a connection as long as there are topics.
func (h *hub) run() {
	for h.serve() {
		h.forEach(func(t *topic) { t.asked, t.live = false, false })
		if !sleep(h.ctx, jitter(100*time.Millisecond)) {
			return
		}
	}
}

// serve uses one subscription until it fails (true) or nobody needs it (false).
func (h *hub) serve() bool {
	ctx, cancel := context.WithCancel(h.ctx)
	ps := h.client.Subscribe(ctx, h.unasked()...) // if that fails, receive says so and goes on
	var heard atomic.Bool
	received := make(chan struct{})
	go func() { defer close(received); h.receive(ctx, ps, &heard) }()
	defer func() { cancel(); ps.Close(); <-received }()

	tick := time.NewTicker(h.beat)
	defer tick.Stop()
	for pinged := false; ; {
		select {
		case <-h.ctx.Done():
			return false
		case <-h.kick:
			if names := h.unasked(); len(names) > 0 {
				_ = ps.Subscribe(ctx, names...) // as above
			}
		case <-tick.C:
			idle, over := h.prune()
			if over {
				return false
			}
			if len(idle) > 0 {
				_ = ps.Unsubscribe(ctx, idle...)
			}
			if heard.Swap(false) {
				pinged = false
				continue
			}
			if pinged {
				return true
			}
			pinged = true
			_ = ps.Ping(ctx)
		}
	}
}

// receive passes on what arrives. go-redis connects and subscribes again by
// itself; the confirmations of that wake everyone, who may have missed a
// release meanwhile.
func (h *hub) receive(ctx context.Context, ps *goredis.PubSub, heard *atomic.Bool) {
	for wait := 50 * time.Millisecond; ctx.Err() == nil; {
		m, err := ps.Receive(ctx)
		if err == nil {
			heard.Store(true)
			h.told.Store(false)
			wait = 50 * time.Millisecond
			h.deliver(m)
			continue
		}
		if ctx.Err() != nil || errors.Is(err, goredis.ErrClosed) {
			return
		}
		h.forEach(func(t *topic) { t.live = false })
		if !h.told.Swap(true) {
			h.log.WarnContext(ctx, "distmutex: no wake-ups, waiting by polls", "server", h.name, "error", err)
		}
		sleep(ctx, wait)
		wait = min(2*wait, h.beat)
	}
}

func (h *hub) deliver(m any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var t *topic
	switch m := m.(type) {
	case *goredis.Subscription:
		if t = h.topics[m.Channel]; t == nil || m.Kind != "subscribe" {
			return
		}
		t.live = true
	case *goredis.Message:
		if t = h.topics[m.Channel]; t == nil {
			return
		}
		if m.Channel == h.inbox {
			if id := t.pass(m.Payload); id != 0 {
				h.gone(id)
			}
			return
		}
		t.tell(m.Payload)
		return
	default:
		return
	}
	for _, w := range t.waiters {
		w.wake()
	}
}

// unasked lists the channels to subscribe to and counts them as asked for.
func (h *hub) unasked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for name, t := range h.topics {
		if !t.asked {
			t.asked = true
			names = append(names, name)
		}
	}
	return names
}

// prune drops idle topics and says whether none is left; the hub has stopped
// running then.
func (h *hub) prune() (idle []string, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, t := range h.topics {
		switch {
		case len(t.waiters) > 0:
		case t.idle:
			delete(h.topics, name)
			idle = append(idle, name)
		default:
			t.idle = true
		}
	}
	over = len(h.topics) == 0
	h.running = !over
	return idle, over
}

func (h *hub) forEach(f func(*topic)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.topics {
		f(t)
	}
}

// sleep says whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
