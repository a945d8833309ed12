package mutex

import (
	"context"
	"errors"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/internal/jitter"
)

// farewell is a lease that is given up without anybody who waits for that.
type farewell struct {
	ctx   context.Context // for its values
	lease backend.Lease
	ends  time.Time                   // when nothing is left to be released
	ready func(context.Context) error // waits until it may be sent; nil: it may
}

// abandon releases a lease in the background: one that may have been granted to
// nobody, or that its holder has lost. It waits for ready first, if there is one.
// Its caller is work itself.
func (s *Session) abandon(ctx context.Context, l backend.Lease, ready func(context.Context) error) {
	s.mu.Lock()
	s.work++
	s.mu.Unlock()
	go s.farewells.serve(farewell{ctx, l, time.Now().Add(l.TTL), ready}, s.part)
}

// part releases a lease until that is answered, or a whole term has passed.
func (s *Session) part(f farewell) {
	defer s.end()
	ctx, cancel := context.WithDeadline(context.WithoutCancel(f.ctx), f.ends)
	defer cancel()
	if ctx.Err() != nil {
		return
	}
	defer context.AfterFunc(s.bg, cancel)()
	if f.ready != nil && f.ready(ctx) != nil {
		return
	}
	for n := 0; ; n++ {
		err := s.b.Release(ctx, f.lease)
		pause := 5 * time.Millisecond << min(n, 6)
		if err == nil || errors.Is(err, ErrLost) || isInvalid(err) || !sleep(ctx, pause/2+jitter.Of(f.lease.Owner, n, pause)) {
			return
		}
	}
}

// sleep says whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
