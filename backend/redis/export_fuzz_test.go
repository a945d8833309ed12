package redis

import "time"

// SourceKey is where Tokens counts for a key.
var SourceKey = sourceKey

// ReadInfo is what INFO says of a server.
func ReadInfo(info string) (runID string, uptime time.Duration, promoted bool, unfitness error) {
	s := sightOf(info, false)
	return s.runID, s.uptime, s.promoted, unfit(info)
}

// ReadMarker reads a marker and writes it again.
func ReadMarker(text string) (again string, maxTTL time.Duration) {
	m := parseMarker(text)
	return m.String(), m.maxTTL
}
