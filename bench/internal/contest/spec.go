package contest

import "time"

// spec is what one process of a run is told, once.
type spec struct {
	Job        string
	Peer       string
	Addrs      []string
	Clients    int // independent ones in this process, each with connections of its own
	Goroutines int // for each client
	First      int // number of this process's first goroutine among all
	OwnKeys    bool
	Hold       time.Duration
	TTL        time.Duration
	Settle     time.Duration // before memory and commands are looked at
	Samples    bool          // keep how long each cycle took
	Profile    string        // how names of files for profiles begin; empty: none
	Shared     string        // the file by which the processes check each other
}

// key is the one that a goroutine locks, and its number. Each peer has keys of
// its own: on servers that they share, what one leaves behind must not keep
// another waiting.
func (s *spec) key(goroutine int) (string, int) {
	if !s.OwnKeys {
		return s.Peer + ":one", 0
	}
	return s.Peer + ":" + itoa(s.First+goroutine), s.First + goroutine
}

// handsOver says whether the processes pass the lock to each other, and wait for it.
func (s *spec) handsOver() bool { return s.Job == "handover" }

func (s *spec) ttl() time.Duration {
	if s.TTL == 0 {
		return 8 * time.Second
	}
	return s.TTL
}

// order begins a round in a process, at a moment that all share.
type order struct {
	At  time.Time
	For time.Duration
}

// report is what a process says of a round.
type report struct {
	Workers []worker
	Sums    map[string]float64   // add up over processes
	Samples map[string][]float64 // in microseconds
	Err     string
}

// worker is one goroutine's round.
type worker struct {
	Cycles  int
	Longest float64 // wait, in microseconds
}
