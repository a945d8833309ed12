package redis_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

var stormFor = flag.Duration("storm", 2*time.Second, "how long TestStormOverTheLine runs for each flavour")

// storm is clients that contend for one key over a network that fails.
type storm struct {
	patience time.Duration // of one who waits, at most

	mu     sync.Mutex
	holds  []stormHold
	passed int // grants that were waited for
}

// stormHold is a hold as its client saw it.
type stormHold struct {
	asked, told, ended time.Time
	token              backend.Token
}

// Whatever becomes of requests, answers and news, no two hold at once, from when
// they were told to the end of validity, and tokens rise.
func TestStormOverTheLine(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsReal(t, f)
		t.Parallel()
		s := redistest.Start(t, f, 1)[0]
		st := storm{patience: 2 * time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), *stormFor)
		defer cancel()
		var all sync.WaitGroup
		for range 3 {
			p := redistest.NewProxy(t, s.Addr)
			b := newBackend(t, worst(t, p.Addr, func(o *goredis.Options) {
				o.MaxRetries, o.ReadTimeout, o.DialTimeout = 1, 300*time.Millisecond, 300*time.Millisecond
			}))
			all.Go(func() { trouble(ctx, p) })
			for range 3 {
				all.Go(func() { st.play(ctx, b) })
			}
		}
		all.Wait()
		st.judge(t)
	})
}

// trouble befalls the network between one client and the server.
func trouble(ctx context.Context, p *redistest.Proxy) {
	for ctx.Err() == nil {
		lasts := rand.N(60 * time.Millisecond)
		switch rand.N(6) {
		case 0:
			p.Cut()
		case 1:
			p.BlackHole(true)
			lasts *= 8
		case 2:
			p.Delay(rand.N(100*time.Millisecond), rand.N(100*time.Millisecond))
		case 3:
			p.LoseReply(1, "evalsha")
		case 4:
			p.KeepReply(1, "evalsha")
		}
		pause(ctx, lasts)
		p.BlackHole(false)
		p.Delay(0, 0)
		pause(ctx, rand.N(500*time.Millisecond))
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// play takes the key again and again.
func (st *storm) play(ctx context.Context, b *redis.Backend) {
	const term = 250 * time.Millisecond
	for ctx.Err() == nil {
		h := stormHold{asked: time.Now()}
		want := lease("k", term)
		patience, cancel := context.WithTimeout(ctx, rand.N(st.patience))
		got, err := b.Acquire(patience, want)
		if err != nil {
			want = lease("k", term)
			if got, err = b.Wait(patience, want); err == nil {
				st.count()
			}
		}
		cancel()
		h.told, h.token = time.Now(), got.Token
		if err == nil && got.Start.IsZero() {
			got.Start = want.Start
		}
		if err == nil && h.told.Before(got.Until()) {
			if rand.N(4) > 0 { // else it is over when its term is
				pause(ctx, rand.N(term/8))
				h.ended = time.Now()
			}
			if h.ended.IsZero() || h.ended.After(got.Until()) {
				h.ended = got.Until()
			}
			st.note(h)
			time.Sleep(time.Until(h.ended))
		}
		if err != nil || rand.N(8) > 0 { // else it dies
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), rand.N(time.Second))
			_ = b.Release(late, want)
			cancel()
		}
	}
}

func (st *storm) note(h stormHold) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.holds = append(st.holds, h)
}

func (st *storm) count() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.passed++
}

func (st *storm) judge(t *testing.T) {
	t.Logf("%d holds, %d of them waited for", len(st.holds), st.passed)
	if st.passed == 0 {
		t.Error("nothing was waited for")
	}
	slices.SortFunc(st.holds, func(a, b stormHold) int { return a.told.Compare(b.told) })
	for i, b := range st.holds {
		for _, a := range st.holds[max(0, i-100):i] {
			switch {
			case b.told.Before(a.ended):
				t.Errorf("token %d was held until %v after token %d was", a.token, a.ended.Sub(b.told), b.token)
			case a.told.Before(b.asked) && a.token >= b.token:
				t.Errorf("token %d, and later %d", a.token, b.token)
			}
		}
	}
}
