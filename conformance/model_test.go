package conformance

import (
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// said is one call of a history that is made up, in milliseconds.
type said struct {
	owner, verb  string
	began, ended int
	token, floor backend.Token
	err          error
}

// historyOf has two events for each call, in order of time.
func historyOf(calls ...said) *history {
	h := new(history)
	zero := time.Now()
	for ms := range 2000 {
		h.at = append(h.at, zero.Add(time.Duration(ms)*time.Millisecond))
	}
	for _, s := range calls {
		l := backend.Lease{Key: "k", Owner: s.owner, TTL: 200 * time.Millisecond, Token: s.floor, Start: h.at[s.began]}
		c := &call{client: s.owner, verb: s.verb, asked: l, err: s.err, began: s.began + 1, ended: s.ended + 1}
		if s.err == nil && s.verb == "acquire" {
			c.got = l
			c.got.Token = s.token
		}
		h.calls = append(h.calls, c)
	}
	return h
}

func TestModelOfLeasesThatEnd(t *testing.T) {
	for name, c := range map[string]struct {
		calls []said
		good  bool
	}{
		"a grant that came late had ended, and its owner is granted again": {[]said{
			{owner: "D", verb: "acquire", began: 2, ended: 353, token: 7},
			{owner: "D", verb: "renew", began: 356, ended: 678, err: backend.ErrLost},
			{owner: "K", verb: "acquire", began: 545, ended: 848, token: 8},
			{owner: "D", verb: "acquire", began: 678, ended: 885, token: 9},
			{owner: "K", verb: "acquire", began: 849, ended: 938, err: backend.ErrHeld},
		}, true},
		"one that came in time had not": {[]said{
			{owner: "D", verb: "acquire", began: 2, ended: 40, token: 7},
			{owner: "D", verb: "renew", began: 50, ended: 90, err: backend.ErrLost},
		}, false},
		"nor had one that came late, once it was renewed": {[]said{
			{owner: "D", verb: "acquire", began: 2, ended: 353, token: 7},
			{owner: "D", verb: "renew", began: 356, ended: 400},
			{owner: "K", verb: "acquire", began: 410, ended: 450, token: 8},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v, judged := historyOf(c.calls...).explain(false)
			if !judged || (v == nil) != c.good {
				t.Errorf("judged %v: %v", judged, v)
			}
		})
	}
}
