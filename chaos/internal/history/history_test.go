package history_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/chaos/internal/history"
)

// held is a hold from its call to its release.
func held(id string, token, invoked, returned, released int64) history.Hold {
	return history.Hold{
		ID: id, Key: "k", Token: token, Invoked: invoked, Returned: returned, Until: returned + 1000,
		Released: released, Done: released + 5, Outcome: "ok",
	}
}

func TestGoodHistoriesPass(t *testing.T) {
	lapsed := held("b/0", 2, 5, 120, 0)
	lapsed.Done, lapsed.Until = 0, 500
	killed := held("c/0", 3, 30, 510, 0)
	killed.Done, killed.Killed = 0, 600
	all := []history.Hold{held("a/0", 1, 0, 10, 100), lapsed, killed, held("d/0", 7, 40, 601, 900), {ID: "e/0", Key: "k", Invoked: 3, Refused: "held"}}
	if vs := history.TwoHolders(all); len(vs) > 0 {
		t.Error(vs)
	}
	if vs := history.Tokens(all); len(vs) > 0 {
		t.Error(vs)
	}
	if vs := history.Truth(all); len(vs) > 0 {
		t.Error(vs)
	}
	if vs, n := history.Linear(all, true); len(vs) > 0 || n == 0 {
		t.Error(n, vs)
	}
}

// Each planted violation is found, by the law that names it.
func TestViolationsAreFound(t *testing.T) {
	overrun := held("a/0", 1, 0, 10, 100)
	overrun.Believed = overrun.Until + 1
	for law, all := range map[string][]history.Hold{
		history.TwoIn:       {held("a/0", 1, 0, 10, 100), held("b/0", 2, 5, 99, 200)},
		history.TokenFell:   {held("a/0", 2, 0, 10, 20), held("b/0", 1, 30, 40, 50)},
		history.TokenTwice:  {held("a/0", 2, 0, 10, 20), held("b/0", 2, 5, 40, 50)},
		history.ToldTooLate: {overrun},
	} {
		var found []string
		for _, vs := range [][]history.Violation{history.TwoHolders(all), history.Tokens(all), history.Truth(all)} {
			for _, v := range vs {
				found = append(found, v.Law)
			}
		}
		if fmt.Sprint(found) != fmt.Sprint([]string{law}) {
			t.Errorf("got %q, want %q", found, law)
		}
		if linear, _ := history.Linear(all, true); (law != history.ToldTooLate) != (len(linear) == 1) {
			t.Errorf("%s: porcupine found %v", law, linear)
		}
	}
	if linear, _ := history.Linear([]history.Hold{held("a/0", 0, 0, 10, 20), held("b/0", 0, 30, 40, 50)}, false); len(linear) > 0 {
		t.Errorf("a lock without tokens: %v", linear)
	}
	// Stopped while it was told: another had the lock before it says so.
	if linear, _ := history.Linear([]history.Hold{held("a/0", 1, 0, 100, 50), held("b/0", 2, 60, 70, 80)}, true); len(linear) > 0 {
		t.Errorf("told after the end of validity: %v", linear)
	}
}

func TestLogIsReadBack(t *testing.T) {
	var text bytes.Buffer
	clock := history.NewClock()
	log := history.NewLog(&text, clock)
	until := clock.Of(func() time.Time { return time.Now().Add(time.Second) })
	log.Add(history.Invoke, "c1.2/0.0", "k")
	log.Add(history.Grant, "c1.2/0.0", 7, until)
	log.Add(history.Believe, "c1.2/0.0", until+1)
	log.Add(history.Release, "c1.2/0.0", until+2)
	log.Add(history.Done, "c1.2/0.0", "ok")
	log.Add(history.Invoke, "c1.2/0.1", "k")
	log.Add(history.Refuse, "c1.2/0.1", "held")
	text.WriteString("123 gra") // it was killed
	all, err := history.Read(&text)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	h := all[0]
	if h.Token != 7 || h.Until != until+2 || h.Client() != "c1.2" || h.Worker() != "c1/0" || h.Outcome != "ok" || !h.Granted() || h.End() != h.Released {
		t.Errorf("%+v", h)
	}
	if all[1].Refused != "held" || all[1].Granted() {
		t.Errorf("%+v", all[1])
	}
	for _, bad := range []string{"1 grant a 1 2\n", "x invoke a k\n", "1 invoke a k\n2 guess a k\n", "1 2\n"} {
		if _, err := history.Read(strings.NewReader(bad)); err == nil {
			t.Errorf("accepted: %q", bad)
		}
	}
}

func TestPictureShowsWhatHappened(t *testing.T) {
	all := []history.Hold{held("a/0", 1, 0, 10, 100), held("b/0", 2, 5, 99, 200)}
	p := history.NewPicture(history.TwoHolders(all)[0], all, []history.Mark{{From: 50, To: 60, Label: "F6 flushed nodes [2]"}})
	var text, page bytes.Buffer
	if err := p.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := p.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HAS IT, token 2", "gives it up", "fault begins: F6 flushed nodes [2]", history.TwoIn} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, &text)
		}
	}
	if n := strings.Count(page.String(), "#c0392b"); n != 2 {
		t.Errorf("%d holds are red, want 2", n)
	}
}
