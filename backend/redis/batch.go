package redis

import (
	"context"
	"slices"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// batch sends what many goroutines ask of one server together: as long as a
// pipeline is on its way, what comes meanwhile waits, and makes the next one.
// One goroutine alone waits for nobody. There is no goroutine of its own: of
// those who wait, the first sends for all.
type batch struct {
	client *goredis.Client

	mu      sync.Mutex
	flying  int
	waiting []*request
}

const (
	maxFlying = 1   // pipelines on their way
	maxBatch  = 256 // requests in one
)

// request is some commands that follow each other.
type request struct {
	ctx  context.Context
	cmds []goredis.Cmder
	next chan bool // true: to send for those who wait; false: it was sent
}

// process returns when the commands have their answers. They are not sent if ctx
// ends before they could be.
func (b *batch) process(ctx context.Context, cmds ...goredis.Cmder) {
	r := &request{ctx: ctx, cmds: cmds}
	b.mu.Lock()
	if b.flying == maxFlying {
		r.next = make(chan bool, 1)
		b.waiting = append(b.waiting, r)
		b.mu.Unlock()
		if sends := <-r.next; !sends {
			return
		}
		b.mu.Lock()
	} else {
		b.flying++
	}
	n := min(len(b.waiting), maxBatch)
	others := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	b.mu.Unlock()
	b.send(r, others)
	b.land()
}

// land lets the next one send.
func (b *batch) land() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.waiting = nil
		b.flying--
		return
	}
	b.waiting[0].next <- true
	b.waiting = b.waiting[1:]
}

func (b *batch) send(r *request, others []*request) {
	if len(others) == 0 && len(r.cmds) == 1 {
		_ = b.client.Process(r.ctx, r.cmds[0])
		return
	}
	pipe := b.client.Pipeline()
	for _, r := range append(others, r) {
		for _, cmd := range r.cmds {
			if err := r.ctx.Err(); err != nil {
				cmd.SetErr(err)
			} else {
				_ = pipe.Process(r.ctx, cmd)
			}
		}
	}
	// It ends with nobody's context: each request would end the others'.
	settle(pipe.Exec(context.WithoutCancel(r.ctx))) // each command has its own error
	for _, r := range others {
		r.next <- false
	}
}

// settle gives each command of a pipeline the error that ended it before any was
// sent, as when the server refuses the connection: go-redis leaves them without.
func settle(cmds []goredis.Cmder, err error) {
	if err == nil || slices.ContainsFunc(cmds, func(c goredis.Cmder) bool { return c.Err() != nil }) {
		return
	}
	for _, c := range cmds {
		c.SetErr(err)
	}
}
