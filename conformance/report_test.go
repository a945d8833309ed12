package conformance_test

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/conformance"
)

const guestEnv = "DISTMUTEX_CONFORMANCE_GUEST"

// guests are harnesses of others, some of which fail: TestGuest runs one in a
// process of its own.
var guests = map[string]conformance.Harness{
	"sound":      {New: newMemory},
	"exempt":     {New: func(testing.TB) backend.Backend { return unfenced{memory.New(nil)} }, Unfenced: true, NoExpiry: true},
	"modest":     {New: newMemory, Unfenced: true},
	"broken":     harness(skipUnknown),
	"skips some": {New: skipping(func(id string) bool { return strings.Contains(id, "/tokens/") })},
	"skips all":  {New: skipping(func(string) bool { return true })},
}

func skipping(which func(id string) bool) func(testing.TB) backend.Backend {
	return func(t testing.TB) backend.Backend {
		if which(t.Name()) {
			t.Skip("no server")
		}
		return memory.New(nil)
	}
}

func TestGuest(t *testing.T) {
	name := os.Getenv(guestEnv)
	if name == "" {
		t.Skip("not a test of its own: TestReportReadsLikeACertificate runs it")
	}
	h := guests[name]
	h.Around = synctest.Test
	conformance.Run(t, h)
}

// guest runs a guest as its author would.
func guest(t *testing.T, name string, env ...string) (output string, passed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestGuest$", "-test.v")
	cmd.Env = append(append(os.Environ(), guestEnv+"="+name), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestReportReadsLikeACertificate(t *testing.T) {
	for name, want := range map[string]struct {
		passed bool
		lines  []string
	}{
		"sound": {true, []string{
			"conformance of *memory.Backend: the contract is kept, as far as it was checked",
			"HELD IN PART   1 exclusion        No two holds of one key overlap",
			"not checked in 2 of 11 cases: no Faults.Crash; no Faults.MoveClock",
			"HELD          13 waking",
			"ELSEWHERE      6 loss in time",
			"package mutex keeps it, over any backend",
			" 0 broken, ",
		}},
		"exempt": {true, []string{
			"the contract is kept, as far as it was checked",
			"NOT CHECKED    5 tokens",
			"HELD IN PART   2 validity",
			"the harness says that the backend has NoExpiry",
			"not claimed, and seen to work: leases that end by themselves (the harness says NoExpiry)",
		}},
		"modest": {true, []string{"not claimed, and seen to work: tokens that rise (the harness says Unfenced)"}},
		"broken": {false, []string{
			"broken rule release/never-granted: A lease that was never granted may be released",
			"part of law 10, no orphans; seed ",
			"client A   acquire for 20s",
			"the contract is BROKEN",
			"BROKEN        10 no orphans",
			"    release/never-granted: A lease",
		}},
		"skips some": {false, []string{"skipped by the harness, which claims what it needs: tokens/over-release, tokens/over-expiry"}},
		"skips all":  {true, []string{"nothing was checked: the harness skipped every case", "--- SKIP: TestGuest "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, passed := guest(t, name)
			if passed != want.passed {
				t.Errorf("passed: %v, want %v", passed, want.passed)
			}
			for _, line := range want.lines {
				if !strings.Contains(out, line) {
					t.Errorf("it does not say %q", line)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

func TestReportAndPicturesAreKept(t *testing.T) {
	dir := t.TempDir()
	guest(t, "broken", "DISTMUTEX_CONFORMANCE_DIR="+dir, "DISTMUTEX_CONFORMANCE_SEED=7")
	picture, err := os.Open(filepath.Join(dir, "TestGuest-release-never-granted.svg"))
	if err != nil {
		t.Fatal(err)
	}
	defer picture.Close()
	var root struct {
		XMLName xml.Name
		Texts   []string `xml:"text"`
	}
	if err := xml.NewDecoder(picture).Decode(&root); err != nil || root.XMLName.Local != "svg" ||
		!strings.HasPrefix(root.Texts[0], "release/never-granted: A lease that was never granted") {
		t.Errorf("the picture: %v, %+v", err, root)
	}
	text, err := os.ReadFile(filepath.Join(dir, "TestGuest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Backend string
		Seed    uint64
		Held    int
		Broken  int
		Laws    []struct {
			Law    int
			Result string
			Cases  []struct{ ID, Rule, Result string }
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, l := range r.Laws {
		cases += len(l.Cases)
	}
	if r.Backend != "*conformance_test.faulty" || r.Seed != 7 || r.Held == 0 || r.Broken == 0 || len(r.Laws) != 15 || cases != len(conformance.IDs()) {
		t.Errorf("got %s", text)
	}
	if l := r.Laws[9]; l.Law != 10 || l.Result != "broken" {
		t.Errorf("law 10: got %+v", l)
	}
}
