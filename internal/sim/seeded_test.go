package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/internal/sim"
)

// fault is a mistake in the algorithm, planted into a copy of the source.
type fault struct {
	name  string
	law   sim.Law // that catches it
	seeds int64   // within so many seeds
	edits []edit
}

// edit replaces a text that must be there exactly once.
type edit struct{ file, old, new string }

// root is the module's directory.
const root = "../.."

// builders is how many faults are compiled and run at a time.
var builders = make(chan struct{}, runtime.NumCPU())

// Each fault is found, by the law that it breaks.
func TestSeededFaults(t *testing.T) {
	alone(t)
	if len(faults) < 20 {
		t.Errorf("%d faults are planted, want at least 20", len(faults))
	}
	for _, f := range faults {
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			builders <- struct{}{}
			defer func() { <-builders }()
			binary := build(t, t.Name()[strings.Index(t.Name(), "/")+1:], f.plant(t), here)
			defer os.Remove(binary)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // a fault may hang it
			defer cancel()
			all, err := child(ctx, binary, "-until="+string(f.law), fmt.Sprint("-schedules=", f.seeds))
			if err != nil {
				t.Fatal(err)
			}
			b := all.broke(f.law)
			if b == nil {
				t.Fatalf("%s does not notice it in %d seeds; others: %v", f.law, f.seeds, laws(all))
			}
			t.Logf("seed %d of at most %d: %s: %s", b.Seed, f.seeds, b.Law, b.Text)
		})
	}
}

// plant writes the changed files and an overlay that puts them in place.
func (f *fault) plant(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	replace := make(map[string]string)
	for i, e := range f.edits {
		path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(e.file)))
		if err != nil {
			t.Fatal(err)
		}
		from := path
		if replace[path] != "" {
			from = replace[path]
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			t.Fatalf("%s has this %d times, want once: plant the fault anew:\n%s", e.file, n, e.old)
		}
		replace[path] = filepath.Join(dir, fmt.Sprint(i, "_", filepath.Base(path)))
		text = []byte(strings.Replace(string(text), e.old, e.new, 1))
		if err := os.WriteFile(replace[path], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// laws counts the breaches.
func laws(all tally) map[sim.Law]int {
	n := make(map[sim.Law]int)
	for _, b := range all.Broken {
		n[b.Law]++
	}
	return n
}
