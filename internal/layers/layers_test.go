// Package layers keeps two lists true: which of our packages may import which,
// and which modules a build may hold (doc/dependencies.txt).
package layers

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

const root = "github.com/distmutex/distmutex"

// layer is what a package may import besides the standard library: of ours, by
// their paths below root, and of other modules.
type layer struct {
	ours []string
	libs []string
}

// layers has a row for each package that programs import. What is not in a row
// may not be imported there; so nothing in it imports a driver, telemetry or
// conformance but the quorum's own constructor in redis. Tests may import
// anything, and so may commands, examples and what is internal.
var layers = map[string]layer{
	"backend":           {},
	"backend/memory":    {ours: []string{"backend"}},
	"backend/quorum":    {ours: []string{"backend", "internal/jitter"}, libs: []string{"golang.org/x/sync"}},
	"backend/redis":     {ours: []string{"backend", "backend/quorum"}, libs: []string{"github.com/redis/go-redis/v9", "golang.org/x/sync"}},
	"retry":             {ours: []string{"backend"}, libs: []string{"github.com/cenkalti/backoff/v4"}},
	"fencing":           {ours: []string{"backend"}},
	"fencing/fencehttp": {ours: []string{"backend", "fencing"}},
	"mutex":             {ours: []string{"backend", "fencing", "retry", "internal/jitter"}, libs: []string{"github.com/cenkalti/backoff/v4", "golang.org/x/sync"}},
	"telemetry":         {ours: []string{"backend", "mutex"}, libs: []string{"go.opentelemetry.io/otel"}},
	"conformance":       {ours: []string{"backend"}, libs: []string{"go.uber.org/goleak", "github.com/anishathalye/porcupine"}},
}

// withoutHTTP are the packages that every program holds: they stay small.
var withoutHTTP = []string{"backend", "backend/memory", "backend/quorum", "retry", "fencing", "mutex"}

func TestEveryPackageImportsOnlyItsLayersBelow(t *testing.T) {
	for _, v := range violations(list(t, ".", "-deps")) {
		t.Error(v)
	}
}

// violations checks packages, which are given with all that they import.
func violations(pkgs []listed) []string {
	byPath := map[string]listed{}
	for _, p := range pkgs {
		byPath[p.ImportPath] = p
	}
	var all []string
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		p := byPath[path]
		name, ours := below(path)
		tests := len(p.GoFiles) == 0
		if !ours || tests || p.Name == "main" || strings.Contains("/"+name+"/", "/internal/") {
			continue
		}
		l, ok := layers[name]
		if !ok {
			all = append(all, name+" has no row in the layering: say what it may import")
			continue
		}
		for _, imp := range p.Imports {
			if q := byPath[imp]; !q.Standard && !l.allows(imp) {
				all = append(all, name+" may not import "+imp)
			}
		}
		if slices.Contains(withoutHTTP, name) && slices.Contains(p.Deps, "net/http") {
			all = append(all, name+" pulls net/http into every program")
		}
	}
	return all
}

func (l layer) allows(imp string) bool {
	if name, ours := below(imp); ours {
		return slices.Contains(l.ours, name)
	}
	return slices.ContainsFunc(l.libs, func(lib string) bool {
		return imp == lib || strings.HasPrefix(imp, lib+"/")
	})
}

// below is a package's path below root, if it is ours.
func below(path string) (string, bool) {
	if path == root {
		return "", true
	}
	return strings.CutPrefix(path, root+"/")
}

// Each planted fault must be found, or the check above checks nothing.
func TestViolationsAreFound(t *testing.T) {
	std := listed{ImportPath: "context", Standard: true}
	for want, p := range map[string]listed{
		"": {ImportPath: root + "/mutex", Imports: []string{root + "/backend", "context", "golang.org/x/sync/errgroup"}},
		"backend may not import " + root + "/retry":                  {ImportPath: root + "/backend", Imports: []string{root + "/retry"}},
		"mutex may not import " + root + "/backend/redis":            {ImportPath: root + "/mutex", Imports: []string{root + "/backend/redis"}},
		"mutex may not import " + root + "/internal/redistest":       {ImportPath: root + "/mutex", Imports: []string{root + "/internal/redistest"}},
		"retry may not import github.com/redis/go-redis/v9":          {ImportPath: root + "/retry", Imports: []string{"github.com/redis/go-redis/v9"}},
		"mutex pulls net/http into every program":                    {ImportPath: root + "/mutex", Deps: []string{"net/http"}},
		"helpers has no row in the layering: say what it may import": {ImportPath: root + "/helpers"},
	} {
		p.GoFiles = []string{"a.go"}
		if got := strings.Join(violations([]listed{std, p}), "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
