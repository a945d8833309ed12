package history

import (
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// step is what can happen to a lock: somebody gets it, or a hold ends, by its
// release or because its lease lapses.
type step struct {
	id    string
	grant bool
}

// lock is a lock between two steps.
type lock struct {
	holder string // empty: free
	token  int64  // the largest so far
}

// model is a lock with tokens, or one without.
func model(fenced bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lock{} },
		Step: func(state, input, output any) (bool, any) {
			l, s := state.(lock), input.(step)
			if !s.grant {
				if l.holder == s.id {
					l.holder = ""
				}
				return true, l
			}
			token := output.(int64)
			if l.holder != "" || fenced && token <= l.token {
				return false, l
			}
			return true, lock{s.id, token}
		},
	}
}

// window is how many holds are judged together. They overlap by half, so each is
// judged with those near to it; leaving holds out never makes a good history bad.
const window = 40

// Linear judges holds, window by window, with porcupine. A grant happens between
// its call and its return; a hold ends after its release was sent or, where it
// lapsed, at any time after its validity: the lapse of a lease is legal. So is a
// key that goes on being held by nobody who knows. Where a process was stopped
// while it was told, validity is over before it says so.
func Linear(all []Hold, fenced bool) (found []Violation, windows int) {
	m := model(fenced)
	for key, holds := range byKey(all) {
		for first := 0; first < len(holds); first += window / 2 {
			some := holds[first:min(first+window, len(holds))]
			windows++
			if !porcupine.CheckOperations(m, operations(some)) {
				found = append(found, Violation{NotLinear, key, some[0].Returned, some[len(some)-1].Returned, slices.Clone(some)})
			}
		}
	}
	return inOrder(found), windows
}

func operations(holds []Hold) []porcupine.Operation {
	var all []porcupine.Operation
	for i, h := range holds {
		end := int64(math.MaxInt64)
		if h.Released != 0 && h.Released < h.Until && h.Done != 0 && h.Outcome == "ok" {
			end = h.Done
		}
		all = append(all,
			porcupine.Operation{ClientId: i, Input: step{h.ID, true}, Call: h.Invoked, Output: h.Token, Return: h.Returned},
			porcupine.Operation{ClientId: i, Input: step{h.ID, false}, Call: max(h.Invoked, h.End()), Return: end})
	}
	return all
}
