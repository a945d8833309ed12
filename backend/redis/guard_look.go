package redis

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed lua/marker.lua
var markerLua string

var errSwitched = errors.New("it is another server than a moment ago")

// look finds out what the server is now and prepares it: sees to its marker, and
// loads the script that is bound to its process. All of it goes over one
// connection, so to one process.
func (g *guard) look(ctx context.Context) (inc *incarnation, err error) {
	if _, ok := g.b.client.(*goredis.Client); !ok {
		return g.unguarded(), nil // a cluster keeps marker and lock apart
	}
	err = g.onConn(ctx, func(conn *goredis.Tx) error {
		for range 10 {
			var settled bool
			if inc, settled, err = g.lookOver(ctx, conn); settled || err != nil {
				return err
			}
		}
		return errUnsettled // others keep writing theirs
	})
	return inc, err
}

// onConn lends one connection, and so one server, where that can be had. A Tx
// that watches nothing is that; a goredis.Conn shares settings with its client
// that both write when they connect.
func (g *guard) onConn(ctx context.Context, f func(*goredis.Tx) error) error {
	if client, ok := g.b.client.(*goredis.Client); ok {
		return client.Watch(ctx, f)
	}
	return nil
}

func (g *guard) lookOver(ctx context.Context, conn *goredis.Tx) (inc *incarnation, settled bool, err error) {
	s, err := g.see(ctx, conn)
	if err != nil {
		return nil, false, err
	}
	g.mu.Lock()
	known := g.known
	g.mu.Unlock()
	switch {
	case s.runID == "" && known.birth != "":
		return nil, false, errSwitched // whoever this is
	case s.runID == "":
		return g.unguarded(), true, nil
	}
	m, age := s.judge(known, g.b.maxTTL)
	inc = &incarnation{runID: s.runID, birth: m.birth, marker: m.String(), script: goredis.NewScript(textFor(s.runID))}
	if settled, err = g.prepare(ctx, conn, s, inc); settled {
		g.adopt(s, m, age, inc)
	}
	return inc, settled, err
}

// textFor is the acquire script of one server process.
func textFor(runID string) string {
	return "-- For the process " + runID + " only.\n" + beforeLua + acquireLua
}

// see looks at the server, or says why it is unfit for a quorum.
func (g *guard) see(ctx context.Context, conn *goredis.Tx) (sight, error) {
	sent := time.Now()
	var info, mark *goredis.StringCmd
	var clock *goredis.TimeCmd
	_, err := conn.Pipelined(ctx, func(p goredis.Pipeliner) error {
		info, mark, clock = p.Info(ctx), p.Get(ctx, markerKey), p.Time(ctx)
		return nil
	})
	got := time.Now()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return sight{}, err
	}
	if err := errors.Join(info.Err(), clock.Err(), unfit(info.Val()), old(info.Val())); err != nil {
		return sight{}, err
	}
	s := sightOf(info.Val(), g.durable)
	s.server, s.local = clock.Val(), sent
	s.text = mark.Val()
	s.marker = parseMarker(s.text)
	g.watchClock(s.server, sent, got)()
	return s, nil
}

var errOld = errors.New("it may keep scripts over a restart: a guarded quorum takes Redis 7 or newer, or Valkey")

// old is the error of a server whose scripts are part of its data, so that it
// knows those of a process that has gone.
func old(info string) error {
	version := field(info, "redis_version") // Valkey has it too
	if major, _, ok := strings.Cut(version, "."); ok && len(major) == 1 && major < "7" {
		return errOld
	}
	return nil
}

// prepare writes the marker, if it is to be another, and loads the script. It
// says no if somebody else wrote a marker meanwhile.
func (g *guard) prepare(ctx context.Context, conn *goredis.Tx, s sight, inc *incarnation) (bool, error) {
	write := inc.marker != s.text
	var written *goredis.Cmd
	var again *goredis.StringCmd
	_, err := conn.Pipelined(ctx, func(p goredis.Pipeliner) error {
		if write {
			written = p.Eval(ctx, markerLua, []string{markerKey}, s.text, inc.marker, flag(false))
		}
		p.ScriptLoad(ctx, textFor(s.runID))
		again = p.Info(ctx, "server")
		return nil
	})
	if err != nil {
		return false, err
	}
	if field(again.Val(), "run_id") != s.runID {
		return false, errSwitched
	}
	if !write {
		return true, nil
	}
	status, err := statusOf(written)
	return status == yes, err
}

func statusOf(cmd *goredis.Cmd) (int64, error) {
	vs, err := cmd.Slice()
	if err != nil {
		return 0, err
	}
	r, err := statusAnswers.read(vs)
	return r.status, err
}

// adopt takes what was seen for what the server is. A later look only ever makes
// a node that is recovering wait longer.
func (g *guard) adopt(s sight, m marker, age time.Duration, inc *incarnation) {
	g.fleet.raise(m.maxTTL)
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.birth != g.known.birth {
		if born := time.Now().Add(-age); born.After(g.born) {
			g.born = born
		}
	}
	g.known = memory{birth: m.birth, seen: s.server}
	g.now, g.looked, g.stale = inc, time.Now(), false
}

// unguarded is what a server is that does not say who it is.
func (g *guard) unguarded() *incarnation {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now, g.looked, g.stale = new(incarnation), time.Now(), false
	if !g.warned {
		g.warned = true
		g.b.log.Warn("distmutex: a lock server does not say who it is, so nothing guards against its restarts", "server", g.b.name)
	}
	return g.now
}
