package redis

import "time"

// What the guard goes by, for tests of its judgement.
var (
	Delay     = delay
	MarkerKey = markerKey
)

// Old is the error of a server that may keep scripts over a restart.
var Old = old

// Fleet is the guards of one quorum, without servers.
type Fleet struct{ all []*Backend }

func NewFleet(nodes int, maxTTL time.Duration) *Fleet {
	f := new(Fleet)
	for range nodes {
		f.all = append(f.all, &Backend{maxTTL: maxTTL})
	}
	guardAll(f.all, false)
	return f
}

// See is an answer of a node, whose clock is ahead of ours.
func (f *Fleet) See(node int, ahead time.Duration) {
	now := time.Now()
	f.all[node].guard.watchClock(now.Add(ahead), now, now)()
}

// Ahead lists the nodes that are set aside for their clocks.
func (f *Fleet) Ahead() (nodes []int) {
	for i, b := range f.all {
		if time.Now().Before(b.guard.aheadTo) {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// Sight is what one look at a server shows.
type Sight struct {
	RunID, ReplID string
	Promoted      bool
	Durable       bool
	Uptime        time.Duration
	Server, Local time.Time
	Marker        string
}

// Judge is the marker that a server gets, and for how long it does not count,
// when it is seen by a process that saw birth last at seen.
func Judge(s Sight, birth string, seen time.Time, maxTTL time.Duration) (m string, left time.Duration) {
	got, age := sight{
		runID: s.RunID, replID: s.ReplID, promoted: s.Promoted, durable: s.Durable, uptime: s.Uptime,
		server: s.Server, local: s.Local, text: s.Marker, marker: parseMarker(s.Marker),
	}.judge(memory{birth, seen}, maxTTL)
	return got.String(), max(0, delay(got.maxTTL)-age)
}

// Mark is a marker as it stands on a server.
func Mark(runID, replID, birth string, server, client time.Time, maxTTL time.Duration) string {
	return marker{runID, replID, birth, server, client, maxTTL}.String()
}

// Birth is drawn anew whenever something may have been forgotten.
func Birth(m string) string { return parseMarker(m).birth }

// Watch follows a server's clock.
type Watch struct{ w watch }

// Observe says whether the server's clock, which was ahead by between low and
// high, ran ahead since the last answers.
func (w *Watch) Observe(low, high time.Duration, now time.Time, length time.Duration) bool {
	return w.w.observe(low, high, now, length) > 0
}
