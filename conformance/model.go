package conformance

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/distmutex/distmutex/backend"
)

// state is a key as the contract has it.
type state struct {
	holder string        // empty: nobody
	token  backend.Token // of the holder; zero: nobody was told of it
	last   backend.Token // the largest that anybody was told of
	done   uint64        // the calls of unknown outcome that are over, by their bits
}

// step is one call in the eyes of the model.
type step struct {
	*call
	lapse bool   // no call: the end of the owner's lease
	maybe bool   // which may not have happened
	bit   uint64 // of a call with an unknown outcome
	after uint64 // which of these come before it: those of its owner
}

// explain looks for an order of the calls in which each answer is as the
// contract says. A lease may end by itself once its validity has ended, and a
// call with an unknown outcome has its effect before its owner's next one, or
// never. It takes time that may grow exponentially with the calls that are on
// their way at once, and gives up, with false, after a bound.
func (h *history) explain(unfenced bool) (*violation, bool) {
	ops := h.operations()
	budget := 1_000_000
	gaveUp := false
	model := (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, _ any) []any {
			if budget--; budget < 0 {
				gaveUp = true
				return nil
			}
			return in.(step).from(s.(state), unfenced)
		},
	}).ToModel()
	result, info := porcupine.CheckOperationsVerbose(model, ops, 0)
	if gaveUp || result == porcupine.Ok {
		return nil, !gaveUp
	}
	c := firstUnexplained(ops, info.PartialLinearizations())
	return &violation{
		text:   fmt.Sprintf("no order of the calls explains all answers; this one is left over: %s, %s", c.verb, c.answer()),
		owners: []string{c.asked.Owner},
		call:   c,
	}, true
}

// firstUnexplained is the call that ended first among those that the longest
// order found leaves out.
func firstUnexplained(ops []porcupine.Operation, orders [][][]int) *call {
	var longest []int
	for _, o := range orders[0] {
		if len(o) > len(longest) {
			longest = o
		}
	}
	in := make(map[int]bool)
	for _, i := range longest {
		in[i] = true
	}
	first := -1
	for i, op := range ops {
		if !in[i] && (first < 0 || op.Return < ops[first].Return) {
			first = i
		}
	}
	return ops[first].Input.(step).call
}

// operations are the calls of the owners that were told of a grant, and the ends
// of their leases where nobody released them. What the others may have held for
// a while only keeps the key from somebody, which breaks no rule. There are two
// moments for each event, so that a lease may end between two.
func (h *history) operations() (ops []porcupine.Operation) {
	told := make(map[string]bool)
	for _, c := range h.calls {
		if c.granted() {
			told[c.asked.Owner] = true
		}
	}
	unknown := make(map[string]uint64) // by owner
	bits := 0
	for _, c := range h.calls {
		s := step{call: c, after: unknown[c.asked.Owner]}
		op := porcupine.Operation{Call: int64(2 * c.began), Return: int64(2 * c.ended)}
		switch {
		case c.verb == "fault", !told[c.asked.Owner], c.invalid(), c.hint(), c.verb == "renew" && c.unknown():
			continue
		case c.unknown():
			op.Return = math.MaxInt64
			if bits < 64 { // the order of what is more than that is not looked at
				s.bit = 1 << bits
				bits++
			}
			unknown[c.asked.Owner] |= s.bit
		}
		op.Input = s
		ops = append(ops, op)
	}
	return append(ops, h.lapses(told)...)
}

// lapses are the ends of the leases that may have ended by themselves: one for each
// lease, after all of its terms, and one for each grant that came so late that it
// may have ended before, until the owner's next term begins.
func (h *history) lapses(told map[string]bool) (ops []porcupine.Operation) {
	released := make(map[string]int)
	from := make(map[string]int) // by owner, the event from which on its lease may end
	sample := make(map[string]*call)
	var owners []string
	for i, c := range h.calls {
		owner := c.asked.Owner
		switch {
		case c.granted():
			end := h.atOrAfter(c.got.Until())
			from[owner] = max(from[owner], end)
			if c.ended > end {
				ops = append(ops, porcupine.Operation{
					Input: step{call: c, lapse: true, maybe: true}, Call: int64(2*end - 1), Return: nextTerm(owner, h.calls[i+1:]),
				})
			}
		case c.verb == "renew" && c.ended > 0 && c.err == nil && from[owner] > 0:
			from[owner] = max(from[owner], h.atOrAfter(c.asked.Until()))
		case c.verb == "release" && c.ended > 0 && c.err == nil && released[owner] == 0:
			released[owner] = c.ended
		}
		if told[owner] && sample[owner] == nil {
			sample[owner], owners = c, append(owners, owner)
		}
	}
	for _, owner := range owners {
		if from[owner] > len(h.at) || released[owner] > 0 && from[owner] >= released[owner] {
			continue
		}
		ops = append(ops, porcupine.Operation{
			Input: step{call: sample[owner], lapse: true}, Call: int64(2*from[owner] - 1), Return: math.MaxInt64,
		})
	}
	return ops
}

// nextTerm is until when the owner's lease may have ended before the first of the
// calls that begins a term: a renewal finds it, another grant need not.
func nextTerm(owner string, calls []*call) int64 {
	for _, c := range calls {
		switch {
		case c.asked.Owner != owner || c.ended == 0 || c.err != nil:
		case c.granted():
			return int64(2 * c.ended)
		case c.verb == "renew":
			return int64(2*c.began - 1)
		}
	}
	return math.MaxInt64
}

// atOrAfter is the first event at a time or after it.
func (h *history) atOrAfter(end time.Time) int {
	return sort.Search(len(h.at), func(i int) bool { return !h.at[i].Before(end) }) + 1
}

// from is the states that the step may lead to; none if its answer is wrong.
func (s step) from(now state, unfenced bool) []any {
	owner := s.asked.Owner
	if now.done&s.after != s.after {
		return nil
	}
	now.done |= s.bit
	mine, free := now.holder == owner, now.holder == ""
	without := state{last: now.last, done: now.done}
	switch {
	case s.lapse && mine && s.maybe:
		return []any{now, without}
	case s.lapse && mine:
		return []any{without}
	case s.lapse:
		return []any{now}
	case s.asks():
		return s.grants(now, mine, free, unfenced)
	case s.verb == "release" && s.unknown() && mine:
		return []any{now, without}
	case s.verb == "release" && s.unknown():
		return []any{now}
	case errors.Is(s.err, backend.ErrLost) && !mine:
		return []any{now}
	case errors.Is(s.err, backend.ErrLost) && s.verb == "release":
		return []any{without} // a client's own repeat found another's grant
	case errors.Is(s.err, backend.ErrLost):
		return nil
	case s.verb == "renew" && mine:
		return []any{now}
	case s.verb == "release" && mine:
		return []any{without}
	case s.verb == "release" && (free || s.asked.Token == 0):
		return []any{now}
	}
	return nil
}

// grants is what an Acquire or a Wait leads to.
func (s step) grants(now state, mine, free, unfenced bool) []any {
	next, floor, got := now, s.asked.Token, s.got.Token
	next.holder = s.asked.Owner
	switch {
	case s.unknown() && free:
		next.token = 0
		return []any{now, next}
	case s.unknown() && mine:
		if floor > now.token {
			next.token = 0
		}
		return []any{now, next}
	case s.unknown(), !s.granted() && !mine:
		return []any{now}
	case !s.granted():
		return []any{state{last: now.last, done: now.done}} // a quorum's vote can be lost anew; its owner is spent
	case !mine && !free:
		return nil
	case unfenced:
		return []any{next}
	case got < floor:
		return nil
	case mine && now.token > 0 && floor <= now.token && got != now.token:
		return nil // a raise may go further than it must, a repeat nowhere
	case (free || now.token == 0) && got <= now.last:
		return nil
	}
	next.token, next.last = got, max(now.last, got)
	return []any{next}
}
