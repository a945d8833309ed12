package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/distmutex/distmutex/internal/redistest"
)

// The story, without the times, and without the names of those who may be any.
const story = `
token 1 has the lock, reads 0
token 1 writes 1
token 2 has the lock, reads 1
token 2 writes 2
token 3 has the lock, reads 2
token 3 writes 3
token 4 has the lock, reads 3
token 4 stalls, and does not see that its lease ends
token 4 has lost the lock
token 5 has the lock, reads 3
token 5 writes 4
token 6 has the lock, reads 4
token 6 writes 5
token 4 wakes up, and goes on as if nothing had happened
token 4 writes 4: REFUSED, stale token: 4 came after 6
token 7 has the lock, reads 5
token 7 writes 6
verdict: 6 increments, the counter says 6, late writes refused: 1
`

func TestStoryInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(t.Context(), &out, "", false); err != nil {
			t.Error(err)
		}
		if got := plain(out.String()); got != story {
			t.Errorf("the story is\n%swant%s", out.String(), story)
		}
	})
}

func TestStoryOnServers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		for _, n := range []int{1, 5} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				addrs := redistest.Addrs(redistest.Start(t, f, n))
				var out bytes.Buffer
				if err := run(t.Context(), &out, strings.Join(addrs, ","), true); err != nil {
					t.Errorf("%v, after\n%s", err, out.String())
				}
				checkEnd(t, out.String())
			})
		}
	})
}

// checkEnd checks what is the same however fast the machine is: bob's lease ends
// while he sleeps, others write, and his late write is refused.
func checkEnd(t *testing.T, out string) {
	t.Helper()
	const stalls = `(?s)token (\d+)  bob stalls.*(ann|cid) writes.*token (\d+)  bob wakes up.*token (\d+)  bob writes 4: REFUSED, stale token.*` +
		`bob writes 6\nverdict: 6 increments, the counter says 6, late writes refused: [1-9]\d*\n$`
	m := regexp.MustCompile(stalls).FindStringSubmatch(out)
	if m == nil || m[1] != m[3] || m[1] != m[4] {
		t.Errorf("the end of the story is missing:\n%s", out)
	}
}

// plain leaves out times and names.
func plain(out string) string {
	return "\n" + regexp.MustCompile(`(?m)^ *\d+ ms  (token \d+)  (ann|bob|cid) `).ReplaceAllString(out, "$1 ")
}

func TestWrongAddressIsAnError(t *testing.T) {
	for _, servers := range []string{",", "http://localhost:1", "localhost:1,"} {
		if err := run(t.Context(), new(bytes.Buffer), servers, false); err == nil {
			t.Errorf("run on %q = nil; want an error", servers)
		}
	}
}
