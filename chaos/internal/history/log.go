package history

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The events of one hold, in order. Each is a line, written at once, so that a
// process that is killed leaves all it saw.
const (
	Invoke  = "invoke"  // key: the lock was asked for, just after
	Grant   = "grant"   // token, until: it was got, just before
	Refuse  = "refuse"  // word: it was not
	Believe = "believe" // until: at this instant, or later, the hold was asked and stood
	Lose    = "lose"    // until: the holder was told, just before
	Release = "release" // until: it was given up, just after
	Done    = "done"    // word: what the release answered
)

// Log writes events.
type Log struct {
	w     io.Writer
	clock Clock
}

// NewLog writes to w, each event with one Write.
func NewLog(w io.Writer, c Clock) *Log { return &Log{w, c} }

// Now is the machine's time.
func (l *Log) Now() int64 { return l.clock.Now() }

// Of is the machine's time of an instant that ask tells, as by Clock.Of.
func (l *Log) Of(ask func() time.Time) int64 { return l.clock.Of(ask) }

// Add notes an event of now.
func (l *Log) Add(event, id string, fields ...any) { l.AddAt(l.clock.Now(), event, id, fields...) }

// AddAt notes an event of an instant that was read before.
func (l *Log) AddAt(at int64, event, id string, fields ...any) {
	line := fmt.Appendf(nil, "%d %s %s", at, event, id)
	for _, f := range fields {
		line = fmt.Appendf(line, " %v", f)
	}
	l.w.Write(append(line, '\n')) // a history with a hole in it is found by Read
}

// Hold is one attempt at a lock and what came of it, in nanoseconds of the
// machine; zero: it did not happen.
type Hold struct {
	ID, Key  string
	Invoked  int64
	Returned int64 // granted, as its holder saw it
	Refused  string
	Token    int64
	Until    int64 // the end of validity that the holder was shown last
	Believed int64 // when it last asked and was told that it holds
	Lost     int64
	Released int64
	Done     int64
	Outcome  string
	Killed   int64 // its process has ended by then
}

// Granted says that the lock was got.
func (h Hold) Granted() bool { return h.Returned != 0 }

// Client is the process and its incarnation.
func (h Hold) Client() string { client, _, _ := strings.Cut(h.ID, "/"); return client }

// Worker is who had the hold, whatever the incarnation of its process.
func (h Hold) Worker() string {
	client, rest, _ := strings.Cut(h.ID, "/")
	number, _, _ := strings.Cut(client, ".")
	worker, _, _ := strings.Cut(rest, ".")
	return number + "/" + worker
}

// End is when the holder stopped relying on the lock: at the end of validity at
// the latest.
func (h Hold) End() int64 {
	end := h.Until
	for _, t := range []int64{h.Lost, h.Released, h.Killed} {
		if t != 0 {
			end = min(end, t)
		}
	}
	return end
}

// Read puts the events of a log together, in order of the attempts. The last
// line of a process that was killed may be half of one.
func Read(r io.Reader) ([]Hold, error) {
	holds := make(map[string]*Hold)
	var order []*Hold
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		f := strings.Fields(line)
		if len(f) < 4 {
			return nil, fmt.Errorf("line %d is no event: %q", n, line)
		}
		h := holds[f[2]]
		if h == nil {
			h = &Hold{ID: f[2]}
			holds[h.ID] = h
			order = append(order, h)
		}
		if err := h.note(f); err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", n, line, err)
		}
	}
	all := make([]Hold, len(order))
	for i, h := range order {
		all[i] = *h
	}
	return all, nil
}

func (h *Hold) note(f []string) (err error) {
	number := func(s string) int64 {
		n, e := strconv.ParseInt(s, 10, 64)
		if e != nil {
			err = e
		}
		return n
	}
	at, event, arg := number(f[0]), f[1], f[3]
	if h.Invoked == 0 && event != Invoke {
		return fmt.Errorf("%s without %s", event, Invoke)
	}
	switch event {
	case Invoke:
		h.Invoked, h.Key = at, arg
	case Grant:
		if len(f) < 5 {
			return fmt.Errorf("a grant without its end")
		}
		h.Returned, h.Token, h.Until = at, number(arg), number(f[4])
	case Refuse:
		h.Refused = arg
	case Believe:
		h.Believed, h.Until = at, number(arg)
	case Lose:
		h.Lost, h.Until = at, number(arg)
	case Release:
		h.Released, h.Until = at, number(arg)
	case Done:
		h.Done, h.Outcome = at, arg
	default:
		err = fmt.Errorf("an unknown event")
	}
	return err
}

// Grants keeps the holds that were got, in the order in which their holders
// were told.
func Grants(all []Hold) []Hold {
	granted := slices.DeleteFunc(slices.Clone(all), func(h Hold) bool { return !h.Granted() })
	slices.SortFunc(granted, func(a, b Hold) int { return cmp.Compare(a.Returned, b.Returned) })
	return granted
}
