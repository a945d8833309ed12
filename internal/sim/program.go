package sim

import (
	"context"
	"errors"
	"time"

	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/mutex"
)

// greet makes the client's first contact, if its nodes say who they are: all who
// call meanwhile wait for that, and would go on in one instant.
func (c *client) greet() {
	if !c.w.plan.Identify {
		return
	}
	c.point(int(opApp))
	u := &use{c: c, step: Step{Verb: TryLock, Patience: c.w.plan.NodeTimeout, Writes: 1}, name: [2]int{9, 0}}
	u.run()
}

// run is one goroutine of the client's program.
func (c *client) run(id int) {
	for i, s := range c.plan.Programs[id] {
		time.Sleep(s.Pause + time.Duration(1+c.id))
		c.point(int(opApp), id, i)
		if now := c.w.now(); now >= horizon || c.dead() {
			return
		}
		u := &use{c: c, step: s, name: [2]int{id, i}}
		u.run()
	}
}

// use is one step of a program.
type use struct {
	c    *client
	step Step
	name [2]int
}

func (u *use) run() {
	ctx, cancel := context.WithTimeout(context.Background(), u.step.Patience)
	defer cancel()
	s := u.c.now()
	if u.step.Verb == Close {
		u.close(ctx, s)
		return
	}
	m := s.Mutex(keyName(u.step.Key))
	begun := u.c.w.now()
	var err error
	switch u.step.Verb {
	case Do:
		err = u.do(ctx, m)
	case Hold:
		var h *mutex.Hold
		if h, err = m.Hold(ctx); err == nil {
			u.hold(h, h.Unlock)
		}
	default:
		lock := m.Lock
		if u.step.Verb == TryLock {
			lock = m.TryLock
		}
		if err = lock(ctx); err == nil {
			if h := m.Current(); h != nil {
				u.hold(h, m.Unlock)
			}
		}
	}
	if err != nil {
		u.failed(ctx, begun, err)
	}
}

func (u *use) do(ctx context.Context, m *mutex.Leased) error {
	var rec *hold
	err := m.Do(ctx, func(hctx context.Context) error {
		token, _ := fencing.FromContext(hctx)
		rec = u.c.w.log.begin(u.c, u.step.Key, token)
		defer context.AfterFunc(hctx, rec.lost)()
		for i := range u.step.Writes {
			u.c.point(int(opApp), u.name[0], u.name[1], i)
			if hctx.Err() != nil || u.c.dead() {
				break
			}
			time.Sleep(u.step.Work)
			u.c.w.resources[u.step.Key].write(rec)
		}
		rec.end(rec.reliable(), !errors.Is(context.Cause(hctx), mutex.ErrLost))
		return nil
	})
	if rec != nil {
		rec.unlocked(err, u.c.plan.MinHold)
		return nil
	}
	return err
}

// close ends the session, for all who use it, and begins another.
func (u *use) close(ctx context.Context, s *mutex.Session) {
	if err := s.Close(ctx); err != nil {
		u.c.w.log.event("client", u.c.id, "close: unknown outcome")
	}
	if err := u.c.open(); err != nil {
		u.c.w.log.breach(Truth, "a session did not open: %v", err)
	}
}

// failed judges the error of a Lock: that of the context is told at once and as
// what it is.
func (u *use) failed(ctx context.Context, begun time.Duration, err error) {
	w := u.c.w
	ended := ctx.Err() != nil
	late := w.now() - begun - u.step.Patience
	switch {
	case errors.Is(err, mutex.ErrLost):
		w.log.breach(Truth, "client %d: Lock says %v", u.c.id, err)
	case !ended && errors.Is(err, context.DeadlineExceeded):
		w.log.breach(Truth, "client %d: Lock says %v, and its context has not ended", u.c.id, err)
	case ended && late > 5*ms && !w.wasStopped(u.c.id, begun+u.step.Patience, w.now()):
		w.log.breach(Truth, "client %d: Lock returned %v after its context ended", u.c.id, late)
	}
}

// hold uses the resource while the lock is held, and unlocks.
func (u *use) hold(h *mutex.Hold, unlock func(context.Context) error) {
	c := u.c
	rec := c.w.log.begin(c, u.step.Key, h.Token())
	ctx, cancel := h.Context(context.Background())
	defer cancel()
	stop := context.AfterFunc(ctx, rec.lost)
	for i := range u.step.Writes {
		time.Sleep(u.step.Work)
		c.point(int(opApp), u.name[0], u.name[1], i)
		if c.dead() || !rec.check(h, ctx) {
			break
		}
		if i == u.step.Writes-1 {
			time.Sleep(u.step.Stop) // stopped between the check and the use
		}
		if !c.dead() {
			c.w.resources[u.step.Key].write(rec)
		}
	}
	if u.step.Keep || c.dead() {
		<-ctx.Done()
		c.point(int(opApp), u.name[0], u.name[1])
	}
	stop()
	lasts := h.Err() == nil
	rec.end(h.Until(), lasts)
	if c.dead() {
		return
	}
	uctx, done := context.WithTimeout(context.Background(), c.w.plan.NodeTimeout)
	defer done()
	if u.step.Hasty {
		done()
	}
	rec.unlocked(unlock(uctx), c.plan.MinHold)
}

// givesUp cancels a Lock somewhere on the way. It leaves nothing behind.
func (c *client) givesUp(key int) {
	r := rollsOf(c.w.plan.Seed, 8, c.id, key)
	u := &use{c: c, step: Step{Verb: Hold, Key: key, Patience: 1 + r.below(5*c.w.plan.Latency), Writes: 1}, name: [2]int{8, key}}
	u.run()
}

// getsLock takes a lock when the faults are over, in good time.
func (c *client) getsLock(key int) {
	w := c.w
	time.Sleep(time.Duration(1 + 100*c.id + key))
	c.givesUp(key)
	patience := 2*w.plan.TTL + time.Duration(len(w.clients))*1500*ms
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m := c.now().Mutex(keyName(key))
	h, err := m.Hold(ctx)
	if err != nil && w.plan.Mode == Jump {
		h, err = m.Hold(ctx) // the first may have found out only now whose clock is ahead
	}
	switch {
	case err != nil && !w.plan.progress():
		return
	case err != nil:
		w.log.breach(Progress, "client %d did not get lock %d in %v: %v", c.id, key, patience, err)
		return
	}
	rec := w.log.begin(c, key, h.Token())
	time.Sleep(5 * ms)
	w.resources[key].write(rec)
	rec.end(h.Until(), h.Err() == nil)
	if err := h.Unlock(ctx); err != nil {
		w.log.breach(Truth, "%v was not unlocked with all well: %v", rec.owner, err)
	}
}
