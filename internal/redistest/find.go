package redistest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	serversEnv = "DISTMUTEX_REDIS_SERVERS"
	binEnv     = "DISTMUTEX_REDIS_BIN"

	// binCache is where scripts/servers.sh puts executables, below the user's
	// cache folder. The number changes with the layout.
	binCache = "distmutex/servers-1/bin"
)

// inventory is what was found, once for the process.
type inventory struct {
	bins    map[Flavour]string  // executables
	running map[Flavour][]*lent // servers of serversEnv
	notes   []string            // what was looked at and does not serve
}

var found = sync.OnceValue(func() *inventory {
	inv := &inventory{bins: map[Flavour]string{}, running: map[Flavour][]*lent{}}
	if addrs := os.Getenv(serversEnv); addrs != "" {
		inv.ask(strings.Split(addrs, ","))
		return inv
	}
	if dir := os.Getenv(binEnv); dir != "" {
		inv.look(dir)
		return inv
	}
	if dir, err := os.UserCacheDir(); err == nil {
		inv.look(filepath.Join(dir, filepath.FromSlash(binCache)))
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		inv.look(dir)
	}
	return inv
})

func (inv *inventory) has(f Flavour) bool { return inv.bins[f] != "" || len(inv.running[f]) > 0 }

func (inv *inventory) String() string {
	have := slices.Sorted(maps.Keys(inv.bins))
	have = append(have, slices.Sorted(maps.Keys(inv.running))...)
	s := fmt.Sprintf("found %v", have)
	if len(inv.notes) > 0 {
		s += " (" + strings.Join(inv.notes, "; ") + ")"
	}
	return s + "; scripts/servers.sh fetches all where Debian's packages can be had"
}

// look takes the executables of a folder by what they say they are. One that
// was found earlier wins.
func (inv *inventory) look(dir string) {
	for _, pattern := range []string{"redis*-server", "valkey*-server"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern)) // a folder with a bad pattern in its name has none
		for _, path := range paths {
			f, err := version(path)
			if err != nil {
				inv.notes = append(inv.notes, err.Error())
			} else if inv.bins[f] == "" {
				inv.bins[f] = path
			}
		}
	}
}

var versionLine = regexp.MustCompile(`(Redis|Valkey) server v=(\d+)\.(\d+)`)

func version(path string) (Flavour, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s does not run: %w", path, cmp.Or(err, fmt.Errorf("it says %q", out)))
	}
	f := flavourOf(string(m[1]), string(m[2])+"."+string(m[3]))
	if f == "" {
		return "", fmt.Errorf("%s is %s %s.%s, which no flavour fits", path, m[1], m[2], m[3])
	}
	return f, nil
}

// flavourOf names the flavour of a product and its version; empty if none fits.
func flavourOf(product, version string) Flavour {
	parts := strings.SplitN(version+".0", ".", 3)
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	switch {
	case strings.EqualFold(product, "valkey") && major >= 9:
		return Valkey9
	case !strings.EqualFold(product, "redis"):
		return ""
	case major == 7:
		return Redis7
	case major == 8 && minor >= 4, major > 8:
		return Redis8
	}
	return ""
}
