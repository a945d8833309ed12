package redis

import (
	"context"
	"errors"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/quorum"
)

// guard keeps a node of a quorum from counting while it may have forgotten locks
// that are still valid, because it restarted, was emptied or replaced, or its
// clock ran ahead.
//
// The sign costs nothing: the acquire script that a guarded node is asked to run
// names the server process in its text, is loaded only after that process has
// said on the same connection who it is, and is never sent whole. Another
// process does not know it. What happens to the data under a process, the script
// sees by the marker.
type guard struct {
	b       *Backend
	fleet   *fleet
	durable bool
	door    singleflight.Group // one look at a time

	mu       sync.Mutex
	now      *incarnation // nil: to be looked at
	looked   time.Time    // when that was found out
	stale    bool         // a call has failed since the last look
	reported string       // the process that Identity named last
	known    memory
	born     time.Time // since when the node has forgotten nothing, by our clock
	clock    watch
	aheadTo  time.Time // its clock ran ahead: it does not count until then
	warned   bool      // that it is not guarded
}

// incarnation is a server process and the data that it has.
type incarnation struct {
	runID  string // empty: it does not say, so it is not guarded
	birth  string
	marker string
	script *goredis.Script
}

// attempt runs the acquire script, under guard if there is one, or does without.
func (b *Backend) attempt(ctx context.Context, want backend.Lease, owner *secret) (reply, error) {
	if b.plain {
		return b.acquirePlainly(ctx, want, owner)
	}
	keys := []string{want.Key, counterKey(want.Key), tombsKey(want.Key)}
	args := acquireArgs(want, b.maxTTL)
	if b.guard != nil {
		return b.guard.acquire(ctx, want, keys, owner, args)
	}
	return b.eval(ctx, acquireScript, keys, owner, args...)
}

var errUnsettled = errors.New("it was another server, or emptied, each time it was looked at")

// acquire runs the acquire script. What it answers counts only as far as the
// reply says: nothing of a process or of data that was not looked at does.
func (g *guard) acquire(ctx context.Context, want backend.Lease, keys []string, owner *secret, args []any) (reply, error) {
	plain := keys
	keys = append(keys, markerKey, queueKey(want.Key), turnKey(want.Key))
	for range 4 {
		inc, err := g.incarnation(ctx)
		switch {
		case err != nil:
			return reply{}, err
		case inc.runID == "":
			return g.b.eval(ctx, acquireScript, plain, owner, args...)
		}
		// Nothing new is granted by a node that does not count: it would count for
		// a call that is repeated later, with a token from the time of the gap.
		compare := want.Token == 0 && g.uncounted(inc, time.Now()) != nil
		sent := time.Now()
		r, err := g.run(ctx, inc, keys, owner, append(args, inc.marker, flag(compare), want.Ticket))
		switch {
		case err == nil && r.status != unknown:
			r.uncounted = g.judge(inc, r, sent, time.Now(), compare)
			return r, nil
		case err != nil && !goredis.HasErrorPrefix(err, "NOSCRIPT"):
			g.failed()
			return reply{}, err
		}
		g.lookAgain(inc)
	}
	return reply{}, errUnsettled
}

func (g *guard) run(ctx context.Context, inc *incarnation, keys []string, owner *secret, args []any) (reply, error) {
	vs, err := g.b.evalSha(ctx, inc.script, keys, append([]any{owner}, args...)).Slice()
	if err != nil {
		if goredis.HasErrorPrefix(err, "NOSCRIPT") {
			owner.sent.Add(-1) // this one did not run
		}
		return reply{}, err
	}
	return guardedAnswers.read(vs)
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// judge says why an answer of inc does not count; nil if it does. It is asked
// after the answer came: what is forgotten later is another incarnation's.
func (g *guard) judge(inc *incarnation, r reply, sent, got time.Time, compared bool) error {
	forgiven := g.watchClock(r.time, sent, got)
	g.mu.Lock()
	if g.now == inc {
		g.known.seen = r.time
	}
	g.mu.Unlock()
	e := g.uncounted(inc, got)
	forgiven()
	if e == nil && compared {
		e = &quorum.UncountedError{Reason: quorum.Recovering}
	}
	return e
}

// watchClock notes what the server's clock was. If it ran ahead, the node does
// not count for a while. The function returned puts that right, after this
// answer, where it was our clock that stood still.
func (g *guard) watchClock(server, sent, got time.Time) (forgive func()) {
	low, high := g.fleet.bounds(server, sent, got)
	length := g.fleet.longest()
	g.mu.Lock()
	defer g.mu.Unlock()
	by := g.clock.observe(low, high, got, length)
	if by <= 0 {
		return func() {}
	}
	g.aheadTo = got.Add(delay(length))
	return func() {
		for _, other := range g.fleet.ranAhead(g, by, got) {
			other.forgive()
		}
	}
}

// uncounted says why the node does not count now, with what it was looked at as;
// nil if it does.
func (g *guard) uncounted(inc *incarnation, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	recovering, ahead := g.born.Add(delay(g.fleet.longest())).Sub(now), g.aheadTo.Sub(now)
	switch {
	case ahead > 0 && ahead > recovering:
		return &quorum.UncountedError{Reason: quorum.ClockAhead, Left: ahead}
	case recovering > 0:
		return &quorum.UncountedError{Reason: quorum.Recovering, Left: recovering}
	case g.now == nil || g.now.birth != inc.birth || g.now.runID != inc.runID,
		g.reported != "" && g.reported != inc.runID: // may be another node's server too
		return &quorum.UncountedError{Reason: quorum.Recovering}
	}
	return nil
}

// clockAhead is for quorum.Clock.
func (g *guard) clockAhead() (ahead, within time.Duration, ok bool) {
	slack := backend.Drift(g.fleet.longest()) / 2
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &g.clock
	return (c.low + c.high) / 2, (c.high-c.low)/2 + slack, c.known
}

// forgive is for a node whose clock was right.
func (g *guard) forgive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.aheadTo = time.Time{}
}

// failed notes a call that got no answer: who answers next is to be asked.
func (g *guard) failed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stale = true
}

// lookAgain forgets inc, unless that has been done.
func (g *guard) lookAgain(inc *incarnation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now == inc {
		g.now = nil
	}
}

// incarnation is what the server is now, as far as we know.
func (g *guard) incarnation(ctx context.Context) (*incarnation, error) {
	g.mu.Lock()
	inc := g.now
	g.mu.Unlock()
	if inc != nil {
		return inc, nil
	}
	return g.lookOnce(ctx)
}

// lookOnce looks at the server, once for all who ask meanwhile.
func (g *guard) lookOnce(ctx context.Context) (*incarnation, error) {
	v, err, _ := g.door.Do("", func() (any, error) { return g.look(context.WithoutCancel(ctx)) })
	if err != nil {
		return nil, err
	}
	return v.(*incarnation), nil
}

// fresh is how long a look at a server serves those who ask who it is.
const fresh = time.Second

// identity is the server's run_id. While a node does not count that is asked for
// with each acquire, so it may be a little old: what counts is bound to the
// process that was named.
func (g *guard) identity(ctx context.Context) (string, error) {
	g.mu.Lock()
	inc := g.now
	if g.stale || time.Since(g.looked) > fresh {
		inc = nil
	}
	g.mu.Unlock()
	if inc == nil {
		var err error
		inc, err = await(ctx, &g.b.calls, nil, func() (*incarnation, error) { return g.lookOnce(quiet{ctx}) })
		if err != nil {
			return "", err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reported = inc.runID
	return inc.runID, nil
}
