package history

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is a law that did not hold.
type Violation struct {
	Law   string
	Key   string
	From  int64 // when it began, and when it was over
	To    int64
	Holds []Hold // the two that it is about
}

func (v Violation) String() string {
	s := fmt.Sprintf("%s: key %s, for %.3f ms", v.Law, v.Key, float64(v.To-v.From)/1e6)
	for _, h := range v.Holds {
		s += fmt.Sprintf("; %s token %d", h.ID, h.Token)
	}
	return s
}

// The laws, by what breaks them.
const (
	TwoIn       = "I1 two held the lock at once"
	TokenFell   = "I2 a later hold has no larger token"
	TokenTwice  = "I2 two holds have one token"
	ToldTooLate = "I4 a holder was told that it holds after the end of validity"
	NotLinear   = "no order of grants and ends explains what the clients saw"
)

// TwoHolders finds holds that overlap, from the moment a holder was told to the
// end of its reliance, in one pass over each key.
func TwoHolders(all []Hold) (found []Violation) {
	for key, holds := range byKey(all) {
		var last Hold // the one that ends last of those before
		for _, h := range holds {
			if end := min(last.End(), h.End()); h.Returned < end {
				found = append(found, Violation{TwoIn, key, h.Returned, end, []Hold{last, h}})
			}
			if h.End() > last.End() {
				last = h
			}
		}
	}
	return inOrder(found)
}

// Tokens finds holds without a token larger than those of all holds that were
// granted before they were asked for, and tokens that were given twice.
func Tokens(all []Hold) (found []Violation) {
	for key, returned := range byKey(all) {
		owners := make(map[int64]Hold)
		for _, h := range returned {
			if first, twice := owners[h.Token]; twice {
				found = append(found, Violation{TokenTwice, key, first.Returned, h.Returned, []Hold{first, h}})
			}
			owners[h.Token] = h
		}
		asked := slices.SortedFunc(slices.Values(returned), func(a, b Hold) int { return cmp.Compare(a.Invoked, b.Invoked) })
		var largest Hold
		next := 0
		for _, h := range asked {
			for ; next < len(returned) && returned[next].Returned < h.Invoked; next++ {
				if returned[next].Token > largest.Token {
					largest = returned[next]
				}
			}
			if h.Token <= largest.Token {
				found = append(found, Violation{TokenFell, key, largest.Returned, h.Returned, []Hold{largest, h}})
			}
		}
	}
	return inOrder(found)
}

// Truth finds holders that were told that they hold at an instant past the end
// of validity that they are shown.
func Truth(all []Hold) (found []Violation) {
	for _, h := range all {
		if h.Granted() && h.Believed > h.Until {
			found = append(found, Violation{ToldTooLate, h.Key, h.Until, h.Believed, []Hold{h}})
		}
	}
	return found
}

// byKey sorts grants by their return, key by key.
func byKey(all []Hold) map[string][]Hold {
	keys := make(map[string][]Hold)
	for _, h := range Grants(all) {
		keys[h.Key] = append(keys[h.Key], h)
	}
	return keys
}

func inOrder(vs []Violation) []Violation {
	slices.SortFunc(vs, func(a, b Violation) int { return cmp.Compare(a.From, b.From) })
	return vs
}
