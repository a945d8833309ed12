package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// inboxPrefix begins the channel on which one process hears what it is passed.
const inboxPrefix = "distmutex:1:wake:"

const (
	// passedTerm bounds the term of a lock that is passed on: what a waiter costs
	// that is not heard of any more. One that is renews for its full term.
	passedTerm = 2 * time.Second

	farPlaces = 32          // from here on, those in line poll seldom
	farther   = 4           // that is so many times as seldom
	lineLife  = time.Minute // of a line, after the last who came or polled
	strayLife = time.Hour   // for which an entry is known whose Release failed
)

// places are the entries in lines that a Release has to take out.
type places struct {
	mu    sync.Mutex
	m     map[laneID]place
	stray map[uint64]backend.Lease // by id: those whose Release failed
}

// place is a waiter's entry.
type place struct {
	id   uint64
	text string
}

func (p *places) enter(l backend.Lease, id uint64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.m == nil {
		p.m, p.stray = make(map[laneID]place), make(map[uint64]backend.Lease)
	}
	p.m[laneID{l.Key, l.Owner}] = place{id, text}
}

func (p *places) of(l backend.Lease) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m[laneID{l.Key, l.Owner}].text
}

func (p *places) leave(l backend.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(l)
}

// remove is called with p.mu held.
func (p *places) remove(l backend.Lease) {
	id := laneID{l.Key, l.Owner}
	delete(p.stray, p.m[id].id)
	delete(p.m, id)
}

// remain notes that the entry of a lease may have outlived its Release.
func (p *places) remain(l backend.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.m[laneID{l.Key, l.Owner}]
	if _, known := p.stray[e.id]; !ok || known {
		return
	}
	l.Token = 0
	p.stray[e.id] = l
	time.AfterFunc(strayLife, func() { p.leave(l) })
}

// remaining is the lease of an entry that outlived its Release.
func (p *places) remaining(id uint64) (backend.Lease, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.stray[id]
	return l, ok
}

// given is a lock that was passed to a waiter.
type given struct {
	token backend.Token
	term  time.Duration
	at    time.Time // by the server's clock
}

// pass hands on what a message says. If the waiter has gone, that is its number.
// It is called with hub.mu held.
func (t *topic) pass(message string) (gone uint64) {
	words := strings.Fields(message)
	if len(words) != 4 {
		return 0
	}
	var n [4]uint64
	for i, word := range words {
		var err error
		if n[i], err = strconv.ParseUint(word, 10, 53); err != nil {
			return 0
		}
	}
	w := t.waiters[n[0]]
	if w == nil {
		return n[0]
	}
	w.given = given{backend.Token(n[1]), min(time.Duration(n[2]), passedTerm/time.Millisecond) * time.Millisecond, time.UnixMicro(int64(n[3]))}
	w.wake()
	return 0
}

// taken is what the waiter was passed since the last call, if anything.
func (w *waiter) taken() given {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	g := w.given
	w.given = given{}
	return g
}

// stand waits in line for a grant. The lock may be passed on while it stands: the
// news of that counts from a moment that is surely before, and if it does not
// come, or too late, the server says so when it is asked the next time.
func (b *Backend) stand(ctx context.Context, want backend.Lease) (seen backend.Lease, err error) {
	w, err := b.hub.listen(ctx, b.hub.inbox, "")
	if err != nil {
		return seen, err
	}
	defer w.leave()
	first := time.Now()
	for came := int64(0); ; {
		sent := time.Now()
		r, err := b.standOnce(ctx, want, w, came)
		switch {
		case err != nil:
			return seen, err
		case r.status == otherwise:
			return seen, backend.ErrHeld
		case r.status == yes:
			b.places.leave(want)
			want.Token, want.Start = r.token, sent
			return want, nil
		}
		came, seen.Key = r.came, want.Key
		if _, err := w.sleep(ctx, r.pause()); err != nil {
			return seen, err
		}
		if got, ok := w.taken().lease(want, sent, r.time); ok {
			if got.Start.Before(first) {
				got.Start = first // nothing was granted before it was asked for
			}
			b.places.leave(want)
			return got, nil
		}
	}
}

// standOnce asks once, and takes a place in line if the waiter hears of a grant.
func (b *Backend) standOnce(ctx context.Context, want backend.Lease, w *waiter, came int64) (reply, error) {
	entry := ""
	if w.live() {
		entry = fmt.Sprintf("%d %s %d %d %s", w.id, w.hub.inbox, want.TTL.Milliseconds(), int64(want.Token), want.Owner)
		b.places.enter(want, w.id, entry)
	}
	owner := &secret{owner: want.Owner}
	return b.ask(ctx, want, owner, func(ctx context.Context) (reply, error) {
		return b.eval(ctx, standScript, lineKeys(want.Key), owner,
			want.TTL.Milliseconds(), int64(want.Token), (want.TTL + counterLife).Milliseconds(),
			&secret{owner: entry}, came, passedTerm.Milliseconds(), lineLife.Milliseconds())
	})
}

func lineKeys(key string) []string {
	return []string{key, counterKey(key), tombsKey(key), lineKey(key)}
}

// pause is how long to wait for news before asking again: until the holder's term
// has ended, those in front first, or for a time that is longer for those behind.
func (r *reply) pause() time.Duration {
	if r.place < 0 {
		if r.left < 0 {
			return jitter(blindPoll)
		}
		return min(jitter(blindPoll), r.left+time.Millisecond+rand.N(spread))
	}
	far := time.Duration(min(r.place, farPlaces))
	d := jitter(poll + poll*farther*far/farPlaces)
	if r.left >= 0 {
		d = min(d, r.left+time.Millisecond+rand.N(spread)+time.Duration(r.place)*spread)
	}
	return d
}

// lease is what was passed, and whether it is worth something still. The server
// read its clock for an answer after sent, and passed the lock at another time by
// the same clock: what lies between leads to a moment before it did, if clocks
// differ by no more than the drift. The lock may also have been passed before, and
// the news of it be older than the answer. A moment that is still to come shows
// that a clock was set, or that this machine slept.
func (g given) lease(want backend.Lease, sent, read time.Time) (got backend.Lease, ok bool) {
	between, now := g.at.Sub(read), time.Now()
	want.Start = sent.Add(between - backend.Drift(between.Abs()))
	want.TTL, want.Token = g.term, g.token
	return want, g.term > 0 && !want.Start.After(now) && want.Until().After(now)
}

// passOn releases a lease, or a place in line, and passes the lock on.
func (b *Backend) passOn(ctx context.Context, held backend.Lease, owner *secret, keep time.Duration) (reply, error) {
	r, err := b.eval(ctx, passScript, lineKeys(held.Key), owner,
		keep.Milliseconds(), wakeChannel(held.Key), &secret{owner: b.places.of(held)},
		passedTerm.Milliseconds(), (b.maxTTL + counterLife).Milliseconds())
	if err == nil {
		b.places.leave(held)
	} else {
		b.places.remain(held)
	}
	return r, err
}

// decline releases a lock that was passed to a waiter which has gone, if that was
// to leave the line and could not: else all others would wait until its term ends.
func (b *Backend) decline(id uint64) {
	if l, ok := b.places.remaining(id); ok {
		b.undo(l)
	}
}
