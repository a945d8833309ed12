package layers

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const budgetFile = "doc/dependencies.txt"

// A new dependency fails this until it is listed with a reason, and so does one
// that is listed and gone, or that has crept from our tests into programs.
func TestBuildsHoldOnlyListedModules(t *testing.T) {
	text, err := os.ReadFile("../../" + budgetFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseBudget(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences(want, held(t)) {
		t.Error(d)
	}
}

// held finds the modules in our builds, and the smallest scope of each: build
// for what a program gets that imports us, test for the rest of the root
// module, or the folder of another module of ours.
func held(t *testing.T) map[string]string {
	scopes := map[string]string{}
	add := func(scope string, pkgs []listed) {
		for _, p := range pkgs {
			if m := p.Module; m != nil && !m.Main && scopes[m.Path] == "" {
				scopes[m.Path] = scope
			}
		}
	}
	for _, m := range modules(t) {
		if m.Path == root {
			add("build", imported(list(t, m.Dir, "-deps")))
			add("test", list(t, m.Dir, "-deps", "-test"))
		}
	}
	for _, m := range modules(t) {
		if m.Path != root {
			add(strings.TrimPrefix(m.Path, root+"/"), list(t, m.Dir, "-deps", "-test"))
		}
	}
	return scopes
}

// imported keeps the packages of layers and what they depend on.
func imported(pkgs []listed) []listed {
	keep := map[string]bool{}
	for _, p := range pkgs {
		name, ours := below(p.ImportPath)
		if _, ok := layers[name]; !ours || !ok {
			continue
		}
		for _, d := range p.Deps {
			keep[d] = true
		}
	}
	return slices.DeleteFunc(pkgs, func(p listed) bool { return !keep[p.ImportPath] })
}

// parseBudget reads lines of scope, module and reason.
func parseBudget(text string) (map[string]string, error) {
	scopes := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 4 {
			return nil, fmt.Errorf("%s: %q is not a scope, a module and a reason in words", budgetFile, line)
		}
		if scopes[f[1]] != "" {
			return nil, fmt.Errorf("%s: %s is listed twice", budgetFile, f[1])
		}
		scopes[f[1]] = f[0]
	}
	return scopes, nil
}

// differences compares the list with what the builds hold.
func differences(want, got map[string]string) []string {
	var all []string
	for _, m := range slices.Sorted(maps.Keys(got)) {
		switch {
		case want[m] == "":
			all = append(all, fmt.Sprintf("%s is a new dependency (%s): list it in %s with a reason, or do without", m, got[m], budgetFile))
		case want[m] != got[m]:
			all = append(all, fmt.Sprintf("%s is listed as %s and is %s", m, want[m], got[m]))
		}
	}
	for _, m := range slices.Sorted(maps.Keys(want)) {
		if got[m] == "" {
			all = append(all, fmt.Sprintf("%s is listed in %s and no build holds it", m, budgetFile))
		}
	}
	return all
}

func TestDifferencesAreFound(t *testing.T) {
	want, err := parseBudget("# modules\nbuild  a/b  needed for c\ntest d/e needed for f\ntest gone/x needed once\n")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(differences(want, map[string]string{"a/b": "build", "d/e": "build", "new/y": "test"}), "\n")
	for _, s := range []string{"d/e is listed as test and is build", "new/y is a new dependency", "gone/x is listed"} {
		if !strings.Contains(got, s) {
			t.Errorf("%q is not among:\n%s", s, got)
		}
	}
	for _, bad := range []string{"build a/b", "build a/b why", "build a/b for c\ntest a/b for d"} {
		if _, err := parseBudget(bad); err == nil {
			t.Errorf("accepted: %q", bad)
		}
	}
}
