package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// report is what a run has found. Its fields are those of the JSON file.
type report struct {
	Test       string    `json:"test"`
	Backend    string    `json:"backend"` // its type
	Began      time.Time `json:"began"`
	Seconds    float64   `json:"seconds"`
	Seed       uint64    `json:"seed"`
	Held       int       `json:"held"` // cases
	Broken     int       `json:"broken"`
	NotChecked int       `json:"not_checked"`
	NotRun     int       `json:"not_run"` // left out by -run
	Laws       []verdict `json:"laws"`
	Unclaimed  []string  `json:"unclaimed"` // works, though the harness says that it does not

	mu   sync.Mutex
	runs []*outcome
}

// verdict is what was found of one law.
type verdict struct {
	Law    int        `json:"law"`
	Name   string     `json:"name"`
	Text   string     `json:"text"`
	Result string     `json:"result"`
	Why    string     `json:"why,omitempty"` // not all of it was checked
	Cases  []*outcome `json:"cases"`
}

// skippedByHarness is why a case was not checked that the suite did not skip.
const skippedByHarness = "skipped by the harness, which claims what it needs"

func newReport(t *testing.T, h Harness) *report {
	return &report{Test: t.Name(), Began: time.Now(), Seed: h.Seed}
}

func (r *report) add(o *outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Result == notChecked && o.Why == "" {
		o.Why = skippedByHarness
	}
	r.runs = append(r.runs, o)
	r.Backend = cmp.Or(r.Backend, o.backend)
}

// end sums up, and tells.
func (r *report) end(t *testing.T, h Harness) {
	t.Helper()
	r.sum()
	if h.Dir != "" {
		r.write(t, h.Dir)
	}
	t.Log(r)
	var missed []string
	for _, o := range r.runs {
		if o.Why == skippedByHarness {
			missed = append(missed, o.ID)
		}
	}
	switch {
	case len(missed) == 0:
	case len(missed) == len(r.runs):
		t.Skip("nothing was checked: the harness skipped every case")
	default:
		t.Errorf("%s: %s", skippedByHarness, strings.Join(missed, ", "))
	}
}

func (r *report) sum() {
	all := checks()
	place := make(map[string]int)
	for i, c := range all {
		place[c.id] = i
	}
	slices.SortFunc(r.runs, func(a, b *outcome) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	r.Seconds = time.Since(r.Began).Seconds()
	r.NotRun = len(all) - len(r.runs)
	for i, l := range laws {
		v := verdict{Law: i + 1, Name: l.name, Text: l.text, Cases: []*outcome{}}
		for _, o := range r.runs {
			if o.law == i+1 {
				v.Cases = append(v.Cases, o)
			}
		}
		v.sum(l)
		r.Laws = append(r.Laws, v)
	}
	r.Unclaimed = []string{}
	for _, o := range r.runs {
		switch o.Result {
		case held:
			r.Held++
		case broken:
			r.Broken++
		default:
			r.NotChecked++
		}
		if o.works != "" {
			r.Unclaimed = append(r.Unclaimed, o.works)
		}
	}
}

// count is how many cases of the law had a result.
func (v *verdict) count(result string) (n int) {
	for _, o := range v.Cases {
		if o.Result == result {
			n++
		}
	}
	return n
}

func (v *verdict) sum(l law) {
	var reasons []string
	for _, o := range v.Cases {
		if o.Why != "" && !slices.Contains(reasons, o.Why) {
			reasons = append(reasons, o.Why)
		}
	}
	v.Why = strings.Join(reasons, "; ")
	switch missed := v.count(notChecked); {
	case v.count(broken) > 0:
		v.Result = broken
	case len(v.Cases) == 0 && l.beyond != "":
		v.Result, v.Why = elsewhere, l.beyond
	case missed == len(v.Cases):
		v.Result, v.Why = notChecked, cmp.Or(v.Why, "its cases were not run")
	case missed > 0:
		v.Result = inPart
	default:
		v.Result = held
	}
}

// String is the report for people.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "conformance of %s: %s\n\n", cmp.Or(r.Backend, "a backend"), r.verdict())
	for _, v := range r.Laws {
		fmt.Fprintf(&b, "  %-12s  %2d %-15s  %s\n", strings.ToUpper(v.Result), v.Law, v.Name, v.Text)
		switch missed := v.count(notChecked); v.Result {
		case broken:
			for _, o := range v.Cases {
				if o.Result == broken {
					fmt.Fprintf(&b, "%36s%s: %s\n", "", o.ID, o.Rule)
				}
			}
		case inPart:
			fmt.Fprintf(&b, "%36snot checked in %d of %d cases: %s\n", "", missed, len(v.Cases), v.Why)
		case notChecked, elsewhere:
			fmt.Fprintf(&b, "%36s%s\n", "", v.Why)
		}
	}
	for _, s := range r.Unclaimed {
		fmt.Fprintf(&b, "\n  not claimed, and seen to work: %s", s)
	}
	fmt.Fprintf(&b, "\n  %d cases held, %d broken, %d not checked", r.Held, r.Broken, r.NotChecked)
	if r.NotRun > 0 {
		fmt.Fprintf(&b, ", %d not run", r.NotRun)
	}
	fmt.Fprintf(&b, "; %.1f s, seed %d", r.Seconds, r.Seed)
	return b.String()
}

func (r *report) verdict() string {
	switch {
	case r.Broken > 0:
		return "the contract is BROKEN"
	case r.Held == 0:
		return "nothing was checked"
	case r.NotChecked+r.NotRun > 0:
		return "the contract is kept, as far as it was checked"
	}
	return "the contract is kept"
}

func (r *report) write(tb testing.TB, dir string) {
	tb.Helper()
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		_, err = save(dir, r.Test+".json", text)
	}
	if err != nil {
		tb.Errorf("the report could not be written: %v", err)
	}
}

// save writes a file named after a test, and returns its path.
func save(dir, name string, text []byte) (string, error) {
	path := filepath.Join(dir, strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) {
			return '-'
		}
		return r
	}, name))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, append(text, '\n'), 0o644)
}
