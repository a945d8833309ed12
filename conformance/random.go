package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

var historyChecks = []check{
	{"history/orders", 1, "Whatever clients do at the same time, one order of their calls explains all answers.", 0, historyOrders},
	{"history/lapses", 1, "One order of the calls explains all answers where leases run out too, none before the end of its validity.", expiry, historyLapses},
	{"history/lossy", 4, "One order of the calls explains all answers where replies get lost.", losing, historyLossy},
	{"history/long", 1, "In a long history too no two holds overlap, and tokens rise.", 0, historyLong},
}

func historyOrders(t *trial) { t.histories(player{rounds: 8, term: long}) }

func historyLapses(t *trial) { t.histories(player{rounds: 4, term: t.short, forgets: true}) }

func historyLossy(t *trial) { t.histories(player{rounds: 10, term: long, lossy: true}) }

// histories judges what four such players do, each time with a new key.
func (t *trial) histories(p player) {
	t.Helper()
	for range t.often(3) {
		t.key += "'"
		t.crowd(4, p)
		t.explained()
	}
}

func historyLong(t *trial) {
	rounds := 75
	if t.h.Around == nil {
		rounds = 9 // each takes real time
	}
	t.crowd(8, player{rounds: rounds, term: long})
	t.judge()
}

// often is how much of something that is done n times where waiting costs no time
// is done where it does.
func (t *trial) often(n int) int {
	if t.h.Around == nil {
		return (n + 2) / 3
	}
	return n
}

// explained judges a history that is short enough to look for an order of its
// calls.
func (t *trial) explained() {
	t.Helper()
	t.judge()
	v, done := t.history.of(t.key).explain(t.unfenced)
	if v != nil {
		t.found = v
		t.Fatalf("%s", v.text)
	}
	if !done {
		t.Logf("the history was too long to look for an order of its calls; its holds were compared")
	}
}

// player is a client that does this and that at random.
type player struct {
	rounds  int // grants that it has in all, if it gets them soon
	term    time.Duration
	forgets bool // releases only every other hold

	lossy bool      // some replies get lost
	stop  time.Time // no round begins after it

	t *trial
	b backend.Backend
	*rand.Rand
}

// crowd has players play at the same time.
func (t *trial) crowd(players int, p player) {
	var wg sync.WaitGroup
	p.stop = time.Now().Add(soon + 10*t.short)
	if t.h.Around != nil {
		p.stop = p.stop.Add(10 * soon) // which costs nothing
	}
	for i := range players {
		p := p
		p.t, p.b, p.Rand = t, []backend.Backend{t.b, t.peer}[i%2], t.randomly(i)
		wg.Go(p.play)
	}
	wg.Wait()
}

func (p *player) play() {
	for n := 0; n < p.rounds && time.Now().Before(p.stop); {
		p.pause(3 * time.Millisecond)
		want := p.t.lease(p.term)
		got, err := p.ask(&want)
		switch {
		case err == nil:
			n++
			p.hold(want, got, p.forgets && n%2 == 0)
		case !errors.Is(err, backend.ErrHeld), want.Ticket != "": // a place in line is owed too
			p.t.undo(p.b, want)
		}
	}
}

// ask tries to get the key in one way or another.
func (p *player) ask(want *backend.Lease) (got backend.Lease, err error) {
	ctx, cancel := p.t.ctx, context.CancelFunc(func() {})
	if p.IntN(6) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(p.Int64N(int64(2*time.Millisecond))))
	}
	defer cancel()
	p.t.note(*want)
	if p.lossy && p.IntN(2) == 0 {
		p.t.loseReply(p.b, *want)
	}
	if w := p.t.waiter(p.b); w != nil && p.IntN(3) == 0 {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		got, err = w.Wait(ctx, *want)
		cancel()
		if err != nil || got.TTL > 0 {
			return got, err
		}
		want.Ticket, want.Start = got.Ticket, time.Now()
	}
	got, err = p.b.Acquire(ctx, *want)
	if p.t.unknown(err) && p.IntN(2) == 0 {
		return p.b.Acquire(p.t.ctx, *want)
	}
	return got, err
}

// hold does something with the key, and ends the hold.
func (p *player) hold(want, got backend.Lease, forgets bool) {
	p.pause(time.Millisecond)
	for range 1 + p.IntN(3) {
		switch p.IntN(4) {
		case 0:
			renewed := got
			renewed.Start = time.Now()
			if p.lossy && p.IntN(2) == 0 {
				p.t.loseReply(p.b, renewed)
			}
			if p.b.Renew(p.t.ctx, renewed) == nil {
				got.Start = renewed.Start
			}
		case 1:
			_, _ = p.b.Acquire(p.t.ctx, want) // again, as after a lost reply
		case 2:
			if raised := want; !p.t.unfenced {
				raised.Token = got.Token + 1 + backend.Token(p.IntN(3))
				if again, err := p.b.Acquire(p.t.ctx, raised); err == nil {
					want, got.Token = raised, again.Token
				}
			}
		default:
			p.pause(2 * time.Millisecond)
		}
	}
	if forgets {
		sleepUntil(got.Start.Add(got.TTL + p.t.late + briefly)) // by then another has it
		_ = p.b.Renew(p.t.ctx, got)
		return
	}
	_ = p.t.persist(func() error { return p.b.Release(p.t.ctx, got) })
	switch p.IntN(3) {
	case 0:
		_ = p.b.Release(p.t.ctx, got)
	case 1:
		_ = p.b.Renew(p.t.ctx, got)
	}
}

func (p *player) pause(upTo time.Duration) { time.Sleep(time.Duration(p.Int64N(int64(upTo)))) }
