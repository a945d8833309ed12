package redis

import (
	crand "crypto/rand"
	"strconv"
	"strings"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// markerKey is where a database keeps its marker. It has a version and a NUL, as
// what is kept beside a lock has, and belongs to no lock.
const markerKey = "distmutex:1:node\x00"

// marker is what guarded clients leave in a database, so that each of them sees
// when the data is not what it was: gone, older, or another server's.
type marker struct {
	runID  string        // of the process that had the data when this was written
	replID string        // its replication ID, which a promotion changes
	birth  string        // drawn anew whenever something may have been forgotten
	server time.Time     // when that was, by the server's clock; zero: never
	client time.Time     // the same by the clock of the client that wrote this
	maxTTL time.Duration // the largest of all clients'
}

// bornAt is a marker that says: whatever was here may have been forgotten now.
func (s sight) bornAt(server, client time.Time) marker {
	return marker{runID: s.runID, replID: s.replID, birth: crand.Text(), server: server, client: client}
}

func (m marker) String() string {
	return strings.Join([]string{
		m.runID, m.replID, m.birth, micros(m.server), micros(m.client), strconv.FormatInt(m.maxTTL.Milliseconds(), 10),
	}, " ")
}

// parseMarker reads a marker. One that can't be read, or has a MaxTTL that no
// client can have, is not an error: it is the marker of nobody we know.
func parseMarker(text string) marker {
	f := strings.Fields(text)
	if len(f) != 6 {
		return marker{}
	}
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(f[3+i], 10, 64); err != nil || n[i] < 0 {
			return marker{}
		}
	}
	if n[2] > backend.MaxTTL.Milliseconds() {
		return marker{}
	}
	return marker{
		runID: f[0], replID: f[1], birth: f[2],
		server: instant(n[0]), client: instant(n[1]), maxTTL: time.Duration(n[2]) * time.Millisecond,
	}
}

func micros(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}
