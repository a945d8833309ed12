package redis

import (
	"strconv"
	"strings"
	"time"

	"github.com/distmutex/distmutex/backend"
)

const (
	// allowedSkew is by how much the clocks of the machines may differ and still
	// be taken for right.
	allowedSkew = time.Second

	// forever is longer than any lease.
	forever = 1000 * backend.MaxTTL
)

// delay is how long a node does not count after it may have forgotten something:
// until the longest lease has ended everywhere, whatever the clocks' rates and
// rounding.
func delay(maxTTL time.Duration) time.Duration {
	return maxTTL + backend.Drift(maxTTL) + time.Second + allowedSkew
}

// sight is what one look at a server shows.
type sight struct {
	runID, replID string
	promoted      bool // it was another's replica before it had this replication ID
	durable       bool // the operator's word, and it does keep its writes
	uptime        time.Duration
	server        time.Time // its clock
	local         time.Time // ours, read before
	text          string    // the marker as it stands; empty: none
	marker        marker
}

// sightOf reads INFO.
func sightOf(info string, durable bool) sight {
	s := sight{runID: field(info, "run_id"), replID: field(info, "master_replid")}
	seconds, _ := strconv.ParseInt(field(info, "uptime_in_seconds"), 10, 64)
	s.uptime = time.Duration(min(seconds, 1<<32)) * time.Second // negative after a step of its clock
	s.promoted = strings.Trim(field(info, "master_replid2"), "0") != ""
	s.durable = durable && field(info, "aof_enabled") == "1"
	return s
}

// memory is what this process knows of a node from earlier.
type memory struct {
	birth string    // of the marker that stood last; empty: none was seen
	seen  time.Time // when it last stood, by the server's clock
}

// judge says which marker the server should have, and for how long it has not
// forgotten anything.
//
// A clock alone is never believed where this process knows better: not the
// uptime, which a step of the clock changes and an emptied or promoted server
// keeps, and no marker that claims to be older than the one that stood here.
func (s sight) judge(known memory, maxTTL time.Duration) (m marker, age time.Duration) {
	m = s.marker
	maxTTL = max(maxTTL, m.maxTTL)
	switch {
	case s.text == "" && known.birth == "" && s.isOld(maxTTL):
		m = s.bornAt(time.Time{}, time.Time{})
	case !s.continues() || m.birth != known.birth && known.birth != "" && m.server.Before(known.seen):
		m = s.bornAt(s.server, s.local)
	}
	m.runID, m.replID, m.maxTTL = s.runID, s.replID, maxTTL
	return m, s.age(m)
}

// continues says whether the data is what the marker was written into: by this
// very process or, if the operator vouches for it, one that ended and came back
// with all it had. A process that was never promoted gets a new replication ID
// too, when the first replica comes or the last has gone.
func (s sight) continues() bool {
	samePrimary := s.marker.replID == s.replID || !s.promoted
	return s.marker.birth != "" && samePrimary && (s.marker.runID == s.runID || s.durable)
}

// isOld says whether the server has run for longer than any lease lasts. Its
// uptime is a difference of two readings of its clock, so that has to be right.
func (s sight) isOld(maxTTL time.Duration) bool {
	return s.uptime >= delay(maxTTL)+2*time.Second && s.server.Sub(s.local).Abs() <= 5*allowedSkew
}

// age is for how long the marker has stood, by the clock that says less.
func (s sight) age(m marker) time.Duration {
	if m.server.IsZero() {
		return forever
	}
	return max(0, min(s.server.Sub(m.server), s.local.Round(0).Sub(m.client)))
}
