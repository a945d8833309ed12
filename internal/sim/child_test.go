package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// tallyMark begins the line with a child's result.
const tallyMark = "tally "

// bin is where children's binaries are, once there is one.
var bin = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "sim") })

func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	if !*sum {
		if dir, err := bin(); err == nil {
			os.RemoveAll(dir)
		}
	}
	os.Exit(status)
}

var plain struct {
	once   sync.Once
	binary string
}

// unchanged is the binary of the code as it is.
func unchanged(t *testing.T) string {
	t.Helper()
	plain.once.Do(func() { plain.binary = build(t, "plain", "", here) })
	if plain.binary == "" {
		t.Fatal("the simulation was not built")
	}
	return plain.binary
}

// build compiles a package's tests without the race detector, which slows the
// simulation down, over the files of an overlay, if there is one.
func build(t *testing.T, name, overlay, pkg string) string {
	t.Helper()
	dir, err := bin()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, name)
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-race=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(cmd.Args[1:], " "), err, out)
	}
	return binary
}

// child runs schedules in a process of its own, on one core, where nothing decides
// an order but the schedule.
func child(ctx context.Context, binary string, flags ...string) (tally, error) {
	cmd := exec.CommandContext(ctx, binary, append([]string{"-test.run=^TestSchedules$", "-test.timeout=0", "-tally", fmt.Sprint("-former=", *former)}, flags...)...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	var all tally
	for line := range bytes.Lines(out) {
		if text, ok := bytes.CutPrefix(line, []byte(tallyMark)); ok {
			return all, json.Unmarshal(text, &all)
		}
	}
	return all, fmt.Errorf("no result: %w\n%s", err, out[max(0, len(out)-4000):])
}

// shared runs seeds from first on in batches, on all cores, until next says that
// it is enough.
func shared(t *testing.T, batch int64, flag string, next func() (first int64, ok bool)) tally {
	t.Helper()
	binary := unchanged(t)
	var (
		mu      sync.Mutex
		all     tally
		workers sync.WaitGroup
	)
	for range runtime.NumCPU() {
		workers.Go(func() {
			for {
				mu.Lock()
				from, ok := next()
				mu.Unlock()
				if !ok {
					return
				}
				some, err := child(t.Context(), binary, flag, fmt.Sprint("-first=", from), fmt.Sprint("-schedules=", batch))
				mu.Lock()
				all.merge(some)
				mu.Unlock()
				if err != nil {
					t.Errorf("seeds from %d: %v", from, err)
					return
				}
			}
		})
	}
	workers.Wait()
	return all
}

// upTo gives batches of n seeds in all.
func upTo(first, n, batch int64) func() (int64, bool) {
	from := first
	return func() (int64, bool) {
		from += batch
		return from - batch, from-batch < first+n
	}
}

// during gives batches until the time is over.
func during(first, batch int64, d time.Duration) func() (int64, bool) {
	from, begun := first, time.Now()
	return func() (int64, bool) {
		from += batch
		return from - batch, time.Since(begun) < d
	}
}
