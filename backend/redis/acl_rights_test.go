package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"

	goredis "github.com/redis/go-redis/v9"
)

// duty is something that a user may be there for.
type duty struct {
	rights []string // each of which it takes
	beside []string // what takes others
	nodes  int
	// do says what went wrong.
	do func(t *testing.T, s []*redistest.Server, as func(*goredis.Options)) error
}

// duties is the table of doc/security.md.
func duties(f redistest.Flavour) map[string]duty {
	all := map[string]duty{
		"wake-ups":               {rights: append(slices.Clone(wakeRights), "&distmutex:1:wake*"), beside: scriptRights, nodes: 1, do: wakesUp},
		"standing in line":       {rights: lineRights[1:], beside: slices.Concat(scriptRights, lineRights[:1], wakeRights, []string{"&distmutex:1:wake*"}), nodes: 1, do: standsInLine},
		"standing in a queue":    {rights: lineRights, beside: slices.Concat(scriptRights, guardRights, wakeRights, []string{"&distmutex:1:wake*"}), nodes: 1, do: standsInQueue},
		"open":                   {rights: []string{"+info"}, beside: scriptRights, nodes: 1, do: opens},
		"tokens":                 {rights: strings.Fields("+evalsha +eval +get +set +time"), nodes: 1, do: draws},
		"tokens without scripts": {rights: strings.Fields("+watch +get +time +multi +set +exec"), nodes: 1, do: draws},
	}
	native := map[redistest.Flavour]string{redistest.Redis8: "+delex", redistest.Valkey9: "+delifeq +getex"}
	if rights := strings.Fields(native[f]); len(rights) > 0 {
		all["native commands"] = duty{rights: rights, beside: scriptRights, nodes: 1, do: withoutScripts}
	}
	for name, m := range modes {
		all[name] = duty{rights: m.rights, nodes: m.nodes, do: func(t *testing.T, s []*redistest.Server, as func(*goredis.Options)) error {
			b := m.open(t, s, as)
			err := errors.Join(drive(t, b)...)
			closeWithin(t, b)
			if err == nil && m.plain {
				err = watchesNothing(t, s[0], as)
			}
			if err != nil && !refusal(err) && !errors.Is(err, errCost) {
				t.Errorf("got %v, want a refusal in words", err)
			}
			return err
		}}
	}
	return all
}

// With the rights that doc/security.md lists all is well; with any one less
// something is not.
func TestEachRightIsNeeded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsReal(t, f)
		t.Parallel()
		servers := redistest.Start(t, f, 3)
		for name, d := range duties(f) {
			t.Run(name, func(t *testing.T) {
				if err := d.with(t, servers, d.rights); err != nil {
					t.Errorf("with %v: %v", d.rights, err)
				}
				for i, right := range d.rights {
					if err := d.with(t, servers, slices.Delete(slices.Clone(d.rights), i, i+1)); err == nil {
						t.Errorf("without %s nothing is amiss", right)
					}
				}
			})
		}
	})
}

// with does the duty as a user of these rights.
func (d duty) with(t *testing.T, servers []*redistest.Server, rights []string) error {
	t.Helper()
	servers = servers[:d.nodes]
	as := user(t, servers, slices.Concat(d.beside, rights, []string{"~*"})...)
	for _, s := range servers {
		s.Wipe()
		s.Client().ScriptFlush(t.Context())
		s.Client().ConfigResetStat(t.Context())
	}
	return d.do(t, servers, as)
}

// standsInLine gets a lock whose holder's term ends, and gives another place up.
func standsInLine(t *testing.T, s []*redistest.Server, as func(*goredis.Options)) error {
	b, ctx := asUser(t, s[0], nil, as), t.Context()
	first, err := b.Acquire(ctx, lease("k", 200*time.Millisecond))
	if err != nil {
		return err
	}
	given := lease("k", 10*time.Second)
	brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := b.Wait(brief, given); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	next := lease("k", 10*time.Second)
	got := make(chan error, 1)
	go func() {
		_, err := b.Wait(ctx, next)
		got <- err
	}()
	err = errors.Join(b.Release(ctx, given), <-got, b.Release(ctx, next))
	_ = b.Release(ctx, first) // lost long ago
	return err
}

// standsInQueue stands in the queue of a quorum, of one server, gives a place up, and
// is told of its turn.
func standsInQueue(t *testing.T, s []*redistest.Server, as func(*goredis.Options)) error {
	q, c, ctx := strangers(t, redistest.Addrs(s), &redis.Options{Logger: slog.New(slog.DiscardHandler)}, as), s[0].Client(), t.Context()
	declare(t, q)
	holder := mustAcquire(t, q, lease("k", 10*time.Second))
	holder.Ticket = "1 1-holder" // it has waited, so it tells the next
	stands := func() int64 { return c.ZCard(ctx, redis.QueueKey("k")).Val() }
	wait := func(ctx context.Context, want backend.Lease) <-chan error {
		got := make(chan error, 1)
		go func() {
			_, err := q.Wait(ctx, want)
			got <- err
		}()
		for end := time.Now().Add(time.Second); stands() == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		return got
	}
	var errs []error
	brief, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := lease("k", 10*time.Second)
	waited := wait(brief, gone)
	if stands() != 1 {
		errs = append(errs, fmt.Errorf("%w: it does not stand in the queue", errCost))
	}
	cancel()
	<-waited
	if err := q.Release(ctx, gone); err != nil || stands() != 0 {
		errs = append(errs, fmt.Errorf("%w: the place is kept (%v)", errCost, err))
	}
	waited = wait(ctx, lease("k", 10*time.Second))
	mustRelease(t, q, holder)
	if c.Exists(ctx, redis.TurnKey("k")).Val() != 1 {
		errs = append(errs, fmt.Errorf("%w: nobody is told of a turn", errCost))
	}
	if err := <-waited; err != nil {
		t.Errorf("wait: %v", err)
	}
	return errors.Join(errs...)
}

func opens(t *testing.T, s []*redistest.Server, _ func(*goredis.Options)) error {
	b, err := open(t, nil, "redis://app:p%40ss@"+s[0].Addr)
	if err == nil {
		closeWithin(t, b)
	}
	return err
}

func draws(t *testing.T, s []*redistest.Server, as func(*goredis.Options)) error {
	c := goredis.NewClient(optionsOf(s[0], as))
	defer c.Close()
	tokens, err := redis.NewTokens(c)
	if err == nil {
		_, err = tokens.Next(t.Context(), "k", 0)
	}
	return err
}

// errCost is for what goes well at a cost.
var errCost = errors.New("it costs more than it has to")

// withoutScripts checks that a lock is released, and on Valkey renewed, natively.
func withoutScripts(t *testing.T, s []*redistest.Server, as func(*goredis.Options)) error {
	b := asUser(t, s[0], &redis.Options{Unordered: true, Logger: slog.New(slog.DiscardHandler)}, as)
	warm(t, b)
	admin := s[0].Client()
	admin.ConfigResetStat(t.Context())
	held := mustAcquire(t, b, lease("k", 20*time.Second))
	err := errors.Join(b.Renew(t.Context(), held), b.Release(t.Context(), held))
	want := map[redistest.Flavour]int{redistest.Redis8: 2, redistest.Valkey9: 1}[s[0].Flavour]
	if got := stats(t, admin)["evalsha"]; err == nil && got != want {
		err = fmt.Errorf("%w: %d scripts, not %d", errCost, got, want)
	}
	return err
}

// watchesNothing checks that a renewal that fails leaves no key watched on its
// connection: the next transaction there would fail for nothing, and be repeated.
func watchesNothing(t *testing.T, s *redistest.Server, as func(*goredis.Options)) error {
	o := optionsOf(s, as)
	o.PoolSize = 1
	b, admin, ctx := overWith(t, goredis.NewClient(o), &redis.Options{Plain: true, Logger: slog.New(slog.DiscardHandler)}), s.Client(), t.Context()
	held, err := b.Acquire(ctx, lease("mine", 20*time.Second))
	if err != nil {
		return err
	}
	if err := b.Renew(ctx, lease("changed", time.Second)); !errors.Is(err, backend.ErrLost) {
		return err
	}
	admin.Set(ctx, "changed", "by another", time.Second)
	admin.ConfigResetStat(ctx)
	err = errors.Join(b.Renew(ctx, held), b.Release(ctx, held))
	if got := stats(t, admin)["exec"]; err == nil && got != 2 {
		err = fmt.Errorf("%w: %d transactions, not 2", errCost, got)
	}
	return err
}

// wakesUp checks that a waiter is woken, and that its connection is looked after.
func wakesUp(t *testing.T, s []*redistest.Server, as func(*goredis.Options)) error {
	var log logs
	b := asUser(t, s[0], &redis.Options{Unordered: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}, as)
	b.SetBeat(20 * time.Millisecond)
	blind := func() bool { return strings.Contains(log.String(), "no wake-ups") }
	held := mustAcquire(t, b, lease("k", 20*time.Second))
	other := mustAcquire(t, b, lease("other", 20*time.Second))
	woken, stays := waiting(t, b, t.Context(), "k"), waiting(t, b, t.Context(), "other")
	eventually(t, "the waiters listen, or can't", func() bool { return blind() || b.Hears("k") && b.Hears("other") })
	mustRelease(t, b, held)
	if err := <-woken; err != nil {
		t.Errorf("wait: %v", err)
	}
	admin := s[0].Client()
	err := errors.New("there are no wake-ups")
	if stats(t, admin)["publish"] > 0 {
		eventually(t, "the connection is looked after, or can't be", func() bool {
			got := stats(t, admin)
			if got["unsubscribe"] > 0 && got["ping"] > 0 {
				err = nil
			}
			if err != nil && len(stays) > 0 { // still somebody has to listen
				<-stays
				stays = waiting(t, b, t.Context(), "other")
				// A slow answer may have cost the connection on which k was to be dropped.
				<-waiting(t, b, t.Context(), "k")
			}
			return err == nil || blind()
		})
	}
	if blind() {
		err = errors.New("there are no wake-ups")
	}
	mustRelease(t, b, other)
	<-stays
	return err
}
