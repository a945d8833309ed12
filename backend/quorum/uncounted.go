package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The reasons for which a node does not count.
const (
	Recovering = "recovering" // it may have forgotten leases that are still valid
	ClockAhead = "clock"      // its clock ran ahead, so it may have ended leases early
)

// UncountedError is the answer of a node that is well and still does not count:
// neither its grants nor its refusals, until what it may have forgotten has
// ended. Its renewals and releases do. A node's Acquire returns it; errors.As
// finds it in what the quorum's Acquire returns.
type UncountedError struct {
	Reason string        // Recovering or ClockAhead
	Left   time.Duration // until it counts again; zero: not known
}

func (e *UncountedError) Error() string {
	why := "it may have forgotten locks"
	if e.Reason == ClockAhead {
		why = "its clock is or was ahead"
	}
	if e.Left <= 0 {
		return "does not count now: " + why
	}
	return fmt.Sprintf("does not count for another %v: %s", e.Left.Round(time.Millisecond), why)
}

// ErrorType is a word for metrics and spans: the reason.
func (e *UncountedError) ErrorType() string { return e.Reason }

func isUncounted(err error) bool {
	var e *UncountedError
	return errors.As(err, &e)
}

// Clock is what a node offers so that it does not count while its server's clock
// is ahead of most others': it may have ended leases early then. One that is
// behind only ends them late.
type Clock interface {
	// Clock says how far the server's clock is ahead of this process's own, as
	// it was at an instant that all nodes have in common and went on evenly, and
	// how wrong that may be with all well.
	Clock() (ahead, within time.Duration, ok bool)
}

// ahead is the error of a node whose clock is ahead of the median of all that are
// known by more than both may be wrong; nil of any other. Where that would be
// between two clocks, ours makes the number odd: else one that is behind, which
// harms nobody, would put a good one out.
func (q *Backend) ahead(n *node) error {
	type reading struct{ ahead, within time.Duration }
	own, ok := reading{}, false
	all := make([]reading, 0, 8)
	for _, other := range q.nodes {
		if other.clock == nil {
			continue
		}
		if a, w, known := other.clock.Clock(); known {
			all = append(all, reading{a, w})
			if other == n {
				own, ok = reading{a, w}, true
			}
		}
	}
	if !ok {
		return nil
	}
	if len(all)%2 == 0 {
		all = append(all, reading{within: own.within})
	}
	slices.SortFunc(all, func(x, y reading) int { return cmp.Compare(x.ahead, y.ahead) })
	median := all[len(all)/2]
	if own.ahead-median.ahead <= own.within+median.within {
		return nil
	}
	return &UncountedError{Reason: ClockAhead}
}

// counts records whether the node's answers to Acquire count, for OnNode. One
// that does not is asked again who it is: it may be another server by now.
func (n *node) counts(err error) {
	n.mu.Lock()
	defer n.unlock()
	n.uncounted = err
	if err != nil {
		n.verified = false
	}
	n.changed = n.told == n.usefulLocked(time.Now())
}

// weed takes back the votes of nodes whose clock turned out to be ahead when the
// clocks of others became known, once a majority has granted.
func (b *ballot) weed() {
	granted := 0
	for _, s := range b.seats {
		if s.granted {
			granted++
		}
	}
	if granted < b.q.need {
		return
	}
	for i := range b.seats {
		s, n := &b.seats[i], b.q.nodes[i]
		if !s.granted || n.clock == nil {
			continue
		}
		if err := b.q.ahead(n); err != nil {
			n.counts(err)
			s.granted, s.err = false, n.wrap("acquire", b.want.Key, err)
		}
	}
}

// judge is the node's answer to an acquire as it counts.
func (n *node) judge(err error) error {
	if !isAnswer(err) {
		return err
	}
	uncounted := err
	if !isUncounted(err) {
		uncounted = nil
		if n.clock != nil {
			uncounted = n.q.ahead(n)
		}
	}
	n.counts(uncounted)
	if err == nil {
		return uncounted
	}
	return err
}
