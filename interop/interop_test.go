// Package interop shows that distmutex and other Redlock clients exclude each
// other. It is a module of its own, so that the others are nobody's dependency.
package interop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redisv9 "github.com/redis/go-redis/v9"

	driver "github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
	"github.com/distmutex/distmutex/mutex"
)

// locker is one client: lock waits until the lock is held, unlock gives it up.
type locker interface {
	lock(ctx context.Context) error
	unlock(ctx context.Context) error
}

const (
	name = "contended"
	ttl  = 8 * time.Second
)

func clients(t testing.TB, servers []*redistest.Server) []redisv9.UniversalClient {
	var all []redisv9.UniversalClient
	for _, s := range servers {
		c := redisv9.NewClient(&redisv9.Options{Addr: s.Addr})
		t.Cleanup(func() { c.Close() })
		all = append(all, c)
	}
	return all
}

// start starts servers, which count for ours at once.
func start(t testing.TB, f redistest.Flavour, n int) []*redistest.Server {
	t.Helper()
	servers := redistest.Start(t, f, n)
	b, err := driver.NewQuorum(clients(t, servers), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.DeclareNew(t.Context()), b.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return servers
}

// ours is distmutex.
type ours struct{ *mutex.Leased }

func (o ours) lock(ctx context.Context) error   { return o.Lock(ctx) }
func (o ours) unlock(ctx context.Context) error { return o.Unlock(ctx) }

func newOurs(t testing.TB, servers []*redistest.Server) locker {
	b, err := driver.NewQuorum(clients(t, servers), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	m, err := mutex.New(b, name, &mutex.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return ours{m}
}

// theirs is go-redsync/redsync, patient.
type theirs struct{ *redsync.Mutex }

func (o theirs) lock(ctx context.Context) error { return o.LockContext(ctx) }

func (o theirs) unlock(ctx context.Context) error {
	_, err := o.UnlockContext(ctx)
	return err
}

func newTheirs(t testing.TB, servers []*redistest.Server) locker {
	var pools []redis.Pool
	for _, c := range clients(t, servers) {
		pools = append(pools, goredis.NewPool(c))
	}
	return theirs{redsync.New(pools...).NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(100_000))}
}

// plain is Redlock as the Redis page has it: SET NX PX everywhere, a majority,
// a script that compares and deletes.
type plain struct {
	nodes []redisv9.UniversalClient
	value string
}

var compareAndDelete = redisv9.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`)

func newPlain(t testing.TB, servers []*redistest.Server) locker {
	return &plain{nodes: clients(t, servers)}
}

func (p *plain) lock(ctx context.Context) error {
	for ctx.Err() == nil {
		begun, got := time.Now(), 0
		p.value = rand.Text()
		for _, n := range p.nodes {
			if n.SetArgs(ctx, name, p.value, redisv9.SetArgs{Mode: "NX", TTL: ttl}).Err() == nil {
				got++
			}
		}
		if got > len(p.nodes)/2 && time.Since(begun) < ttl-ttl/100-2*time.Millisecond {
			return nil
		}
		if err := p.unlock(ctx); err != nil {
			return err
		}
		time.Sleep(time.Duration(len(p.value)%7+1) * time.Millisecond)
	}
	return ctx.Err()
}

func (p *plain) unlock(ctx context.Context) error {
	var errs []error
	for _, n := range p.nodes {
		errs = append(errs, compareAndDelete.Run(ctx, n, []string{name}, p.value).Err())
	}
	return errors.Join(errs...)
}

// Each make contends with the others for one name on the same five nodes, and no
// two hold it at once.
func TestMakesExcludeEachOther(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		servers := start(t, f, 5)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		const each = 30
		var inside atomic.Int32
		counter := 0
		var all sync.WaitGroup
		makes := map[string]func(testing.TB, []*redistest.Server) locker{"ours": newOurs, "redsync": newTheirs, "plain": newPlain}
		for make, open := range makes {
			for range 2 {
				l := open(t, servers)
				all.Go(func() {
					for i := range each {
						if err := l.lock(ctx); err != nil {
							t.Errorf("%s, lock %d: %v", make, i, err)
							return
						}
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d holders at once", n)
						}
						counter++
						time.Sleep(time.Millisecond)
						inside.Add(-1)
						if err := l.unlock(ctx); err != nil {
							t.Errorf("%s, unlock %d: %v", make, i, err)
						}
						time.Sleep(2 * time.Millisecond)
					}
				})
			}
		}
		all.Wait()
		if want := 2 * each * len(makes); counter != want {
			t.Errorf("counted %d, want %d: an update was lost", counter, want)
		}
	})
}

// A bare script releases without telling anybody. Our waiter does not stall: it
// has the lock soon after, not at the end of the term.
func TestWaiterDoesNotStallOnABareRelease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		for _, nodes := range []int{1, 5} {
			t.Run(fmt.Sprint(nodes), func(t *testing.T) {
				servers := start(t, f, nodes)
				other, us := newPlain(t, servers), newOurs(t, servers)
				if err := other.lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := make(chan error, 1)
				go func() { got <- us.lock(t.Context()) }()
				time.Sleep(300 * time.Millisecond)
				released := time.Now()
				if err := other.unlock(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-got; err != nil {
					t.Fatal(err)
				}
				waited := time.Since(released)
				t.Logf("had the lock %v after the release", waited)
				if waited > ttl/2 {
					t.Errorf("waited for %v, until the term was nearly over", waited)
				}
				if err := us.unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	})
}
