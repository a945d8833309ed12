package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/distmutex/distmutex/backend"
)

// judge looks for what is wrong in the history of the trial's key.
func (t *trial) judge() {
	t.Helper()
	if v := t.history.of(t.key).scan(t.unfenced); v != nil {
		t.found = v
		t.Fatalf("%s", v.text)
	}
}

// show prints the end of the history, and draws it where there is a folder for
// that.
func (t *trial) show() {
	t.Helper()
	h := t.history.of(t.key)
	if len(h.calls) == 0 {
		return
	}
	t.Logf("%s", h.timeline(t.found))
	if t.h.Dir == "" {
		return
	}
	heading := fmt.Sprintf("%s: %s", t.id, t.rule)
	path, err := save(t.h.Dir, t.Name()+".svg", []byte(h.picture(heading, t.found, t.h.Seed)))
	if err != nil {
		t.Logf("the picture could not be written: %v", err)
		return
	}
	t.Logf("a picture of it: %s", path)
}

// shown is how many calls a timeline has at most.
const shown = 50

// window is the calls that a timeline shows, and how many it leaves out: the
// last ones, or if there is a violation, those up to a few after it. Attempts
// that came to nothing are left out.
func (h *history) window(v *violation) (calls []*call, out int) {
	telling := h.telling(v)
	last := 0
	for _, c := range h.calls {
		if c.asked.Owner != "" && !telling[c.asked.Owner] {
			continue
		}
		calls = append(calls, c)
		if v == nil || v.call == nil && slices.Contains(v.owners, c.asked.Owner) || v.is(c) {
			last = len(calls)
		}
	}
	last = min(last+5, len(calls))
	calls = calls[max(0, last-shown):last]
	return calls, len(h.calls) - len(calls)
}

// telling are the owners that got the key, or may have.
func (h *history) telling(v *violation) map[string]bool {
	all := make(map[string]bool)
	granted := make(map[string]bool)
	for _, c := range h.calls {
		owner := c.asked.Owner
		switch {
		case c.verb == "fault":
		case c.granted(), v != nil && slices.Contains(v.owners, owner):
			all[owner], granted[owner] = true, true
		case c.asks() && c.unknown():
			all[owner] = true
		case c.verb == "release" && !c.unknown() && !granted[owner]:
			delete(all, owner) // it was undone
		case !c.asks():
			all[owner] = true
		}
	}
	return all
}

// is says that the call is the answer that cannot be.
func (v *violation) is(c *call) bool { return v != nil && v.call != nil && v.call.began == c.began }

// names gives each owner a letter, in the order of their first calls: owners are
// secrets, and long.
func (h *history) names() map[string]string {
	names := make(map[string]string)
	for _, c := range h.calls {
		if names[c.asked.Owner] == "" && c.verb != "fault" {
			names[c.asked.Owner] = letters(len(names))
		}
	}
	return names
}

func letters(n int) string {
	name := string(rune('A' + n%26))
	if n >= 26 {
		return letters(n/26-1) + name
	}
	return name
}

// timeline is the history as a table.
func (h *history) timeline(v *violation) string {
	calls, out := h.window(v)
	names, holds := h.names(), h.holds()
	var b strings.Builder
	fmt.Fprintf(&b, "history of the key, in milliseconds; owners are called A, B, …; %d of %d calls are left out\n", out, len(h.calls))
	fmt.Fprintf(&b, "   %9s %9s  %-7s%-4s%-40s%-33s%s\n", "began", "ended", "client", "for", "call", "answer", "who holds then")
	for _, c := range calls {
		if c.verb == "fault" {
			fmt.Fprintf(&b, "   %9s  * %s %s\n", h.since(c.began), c.client, names[c.asked.Owner])
			continue
		}
		mark, ended := "", "never"
		if v.is(c) || v != nil && v.call == nil && slices.Contains(v.owners, c.asked.Owner) {
			mark = ">>"
		}
		if c.ended > 0 {
			ended = h.since(c.ended)
		}
		fmt.Fprintf(&b, "%-3s%9s %9s  %-7s%-4s%-40s%-33s%s\n", mark,
			h.since(c.began), ended, c.client, names[c.asked.Owner], c.question(), c.answer(), h.holding(holds, names, c))
	}
	return strings.TrimRight(b.String(), "\n")
}

// since is when an event was, in milliseconds since the first.
func (h *history) since(event int) string {
	return fmt.Sprintf("%.2f", float64(h.time(event).Sub(h.at[0]).Microseconds())/1000)
}

// holding is who holds the key after a call.
func (h *history) holding(holds []*hold, names map[string]string, c *call) string {
	at := cmp.Or(c.ended, c.began)
	var who []string
	for _, a := range holds {
		if a.told <= at && h.beforeEnd(at, a) {
			who = append(who, names[a.owner])
		}
	}
	if len(who) > 1 {
		return strings.Join(who, " AND ")
	}
	return strings.Join(who, "")
}

// question is what was asked.
func (c *call) question() string {
	s := c.verb
	switch {
	case c.asks():
		s += " for " + c.asked.TTL.String()
		if c.asked.Token > 0 {
			s += fmt.Sprintf(", from %d", c.asked.Token)
		}
	case c.verb == "renew":
		s += " for " + c.asked.TTL.String()
	}
	return s
}

// answer is what was answered. It gives no owner away.
func (c *call) answer() string {
	switch {
	case c.ended == 0:
		return "none"
	case c.err == nil && c.asks() && c.got.TTL == 0:
		return "a hint"
	case c.err == nil && c.asks() && c.got.Token > 0:
		return fmt.Sprintf("granted, token %d", c.got.Token)
	case c.err == nil && c.asks():
		return "granted"
	case c.err == nil:
		return "nil"
	case errors.Is(c.err, backend.ErrHeld):
		return "held by another"
	case errors.Is(c.err, backend.ErrLost):
		return "lease lost"
	case c.invalid():
		return "invalid"
	case errors.Is(c.err, context.Canceled):
		return "unknown (cancelled)"
	case errors.Is(c.err, context.DeadlineExceeded):
		return "unknown (deadline)"
	}
	return "unknown"
}
