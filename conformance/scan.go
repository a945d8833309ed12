package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// hold is one owner's hold of a key, as its client saw it.
type hold struct {
	owner       string
	asked       int // the first call for it began
	told        int // the first grant was answered
	gave        int // the first Release began; zero: there was none
	first, last backend.Token
	until       time.Time // the end of its validity, all renewals included
}

// holds are those of the key, in the order in which their owners were told. A
// grant that came after the end of its validity is none.
func (h *history) holds() []*hold {
	asked, of := make(map[string]int), make(map[string]*hold)
	var all []*hold
	for _, c := range h.calls {
		owner := c.asked.Owner
		a := of[owner]
		if c.asks() && asked[owner] == 0 {
			asked[owner] = c.began
		}
		switch {
		case c.granted() && a == nil:
			a = &hold{owner: owner, asked: asked[owner], told: c.ended, first: c.got.Token, last: c.got.Token, until: c.got.Until()}
			if h.time(a.told).Before(a.until) {
				of[owner], all = a, append(all, a)
			}
		case a == nil:
		case c.granted():
			a.extend(c.got)
		case c.verb == "renew" && c.ended > 0 && c.err == nil:
			a.extend(c.asked)
		case c.verb == "release" && a.gave == 0 && !c.invalid(),
			c.asks() && a.gave == 0 && errors.Is(c.err, backend.ErrHeld): // which gives up what was granted
			a.gave = c.began
		}
	}
	slices.SortFunc(all, func(a, b *hold) int { return cmp.Compare(a.told, b.told) })
	return all
}

func (a *hold) extend(l backend.Lease) {
	a.last = max(a.last, l.Token)
	if end := l.Until(); end.After(a.until) {
		a.until = end
	}
}

// violation is what a history shows to be wrong, and whose holds or calls they
// are.
type violation struct {
	text   string
	owners []string
	call   *call // the answer that cannot be, if it is one
}

// scan looks through all holds of a key, however many, in one sweep over the
// events.
func (h *history) scan(unfenced bool) *violation {
	all := h.holds()
	if v := h.overlap(all); v != nil || unfenced {
		return v
	}
	return tokensBack(all)
}

// overlap finds two that held the key at once.
func (h *history) overlap(all []*hold) *violation {
	var last *hold // of those before, the one that ends last
	for _, b := range all {
		if last != nil && h.beforeEnd(b.told, last) {
			return &violation{
				text:   fmt.Sprintf("two held the key at once: one with token %d, the other with %d", last.first, b.first),
				owners: []string{last.owner, b.owner},
			}
		}
		if last == nil || h.endsBefore(last, b) {
			last = b
		}
	}
	return nil
}

// beforeEnd says that an event came before the end of a hold: before its Release
// began, and within its validity.
func (h *history) beforeEnd(event int, a *hold) bool {
	return h.time(event).Before(a.until) && (a.gave == 0 || event < a.gave)
}

func (h *history) endsBefore(a, b *hold) bool {
	at := func(x *hold) (time.Time, int) {
		if x.gave > 0 && h.time(x.gave).Before(x.until) {
			return h.time(x.gave), x.gave
		}
		return x.until, 0
	}
	timeA, eventA := at(a)
	timeB, eventB := at(b)
	return timeA.Before(timeB) || timeA.Equal(timeB) && eventA < eventB
}

// tokensBack finds two holds with one token, or a token that is not above those
// of the holds that had ended, or were told of, before its own was asked for.
func tokensBack(all []*hold) *violation {
	type event struct {
		at   int
		kind byte // 'a'sked, 't'old, 'g'ave
		hold *hold
	}
	var events []event
	for _, a := range all {
		events = append(events, event{a.asked, 'a', a}, event{a.told, 't', a})
		if a.gave > 0 {
			events = append(events, event{a.gave, 'g', a})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	larger := func(a, b *hold) *hold {
		if a == nil || b.last > a.last {
			return b
		}
		return a
	}
	var told, gave *hold            // of all so far, the one with the largest token
	before := make(map[*hold]*hold) // what told was when the hold was asked for
	of := make(map[backend.Token]*hold)
	for _, e := range events {
		b := e.hold
		switch e.kind {
		case 'a':
			before[b] = told
		case 'g':
			gave = larger(gave, b)
		default:
			if a := of[b.first]; a != nil {
				return &violation{text: fmt.Sprintf("two holds share the token %d", b.first), owners: []string{a.owner, b.owner}}
			}
			for _, a := range []*hold{before[b], gave} {
				if a != nil && a.last >= b.first {
					return &violation{
						text:   fmt.Sprintf("the token went back: %d, and in a later hold %d", a.last, b.first),
						owners: []string{a.owner, b.owner},
					}
				}
			}
			told, of[b.first] = larger(told, b), b
		}
	}
	return nil
}
