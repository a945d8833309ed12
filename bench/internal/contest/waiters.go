package contest

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// waiters has many goroutines wait for keys that somebody else holds.
type waiters struct {
	s     *spec
	c     Client
	other *goredis.Client
}

func newWaiters(s *spec) (*waiters, error) {
	c, err := open(s)
	if err != nil {
		return nil, err
	}
	return &waiters{s, c, dial(s.Addrs[0])}, nil
}

func (j *waiters) close() {
	j.c.Close()
	j.other.Close()
}

// round lets the waiters settle first. Their commands are counted for as long
// as the round lasts, and their memory then.
func (j *waiters) round(o order, r *report) error {
	if err := j.occupy(time.Minute + o.For); err != nil {
		return err
	}
	before := foot()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range j.s.Goroutines {
		key, _ := j.s.key(i)
		wg.Go(func() { j.wait(ctx, key) })
	}
	defer wg.Wait()
	defer cancel()
	time.Sleep(j.s.Settle)

	from, err := readInfo(ctx, j.other)
	if err != nil {
		return err
	}
	time.Sleep(o.For)
	to, err := readInfo(ctx, j.other)
	if err != nil {
		return err
	}
	sent := to.less(from)
	r.Sums["waiter commands"] = sent.total() / o.For.Seconds() / float64(j.s.Goroutines)
	foot().less(before).report(r, j.s.Goroutines)
	return nil
}

// occupy makes the keys somebody else's, by the names that the peers use.
func (j *waiters) occupy(ttl time.Duration) error {
	_, err := j.other.Pipelined(context.Background(), func(p goredis.Pipeliner) error {
		for i := range j.s.Goroutines {
			key, _ := j.s.key(i)
			p.Set(context.Background(), key, "somebody else", ttl)
			p.Set(context.Background(), "rueidislock:0:"+key, "somebody else", ttl)
		}
		return nil
	})
	return err
}

// wait goes on until the round is over, also where a peer gives up by itself.
func (j *waiters) wait(ctx context.Context, key string) {
	l := j.c.Mutex(key)
	for ctx.Err() == nil {
		if l.Lock(ctx) == nil {
			panic("a lock that somebody else holds was got")
		}
	}
}
