package readme_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const known = 55 // failures in the catalogue

// row is one line of a table of doc/cases.md.
type row struct {
	number int
	laws   []int
	names  []string
	result string
}

// Every known failure is in the catalogue once, and has a law, tests that exist,
// and a result.
func TestCatalogueNamesATestForEveryKnownFailure(t *testing.T) {
	var numbers []int
	ids, laws := conformanceIDs(t), designLaws(t)
	for _, r := range rows(t) {
		numbers = append(numbers, r.number)
		if len(r.laws) == 0 || len(r.names) == 0 || r.result == "" {
			t.Errorf("case %d has %d laws, %d tests and the result %q", r.number, len(r.laws), len(r.names), r.result)
		}
		for _, law := range r.laws {
			if law < 1 || law > len(laws) {
				t.Errorf("case %d: there is no law %d", r.number, law)
			}
		}
		for _, name := range r.names {
			if !exists(t, name, ids) {
				t.Errorf("case %d: there is no test %q", r.number, name)
			}
		}
	}
	for n := 1; n <= known; n++ {
		if i := slices.Index(numbers, n); i < 0 || slices.Contains(numbers[i+1:], n) {
			t.Errorf("case %d is there %d times, want once", n, strings.Count(fmt.Sprint(" ", numbers), fmt.Sprint(" ", n, " ")))
		}
	}
	if len(numbers) != known {
		t.Errorf("%d rows, want %d", len(numbers), known)
	}
}

// The laws have the same names in the same order in the suite's report.
func TestLawsAreThoseOfTheSuite(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "conformance", "laws.go"))
	if err != nil {
		t.Fatal(err)
	}
	var suite []string
	for _, m := range regexp.MustCompile(`(?m)^\t\{"([a-z ]+)", "`).FindAllStringSubmatch(string(source), -1) {
		suite = append(suite, m[1])
	}
	if laws := designLaws(t); len(laws) != 15 || !slices.Equal(laws, suite) {
		t.Errorf("the laws of doc/design.md are %q, those of the suite %q", laws, suite)
	}
}

// A name that does not exist is found, whatever is wrong with it.
func TestMissingTestsAreFound(t *testing.T) {
	ids := conformanceIDs(t)
	for name, want := range map[string]bool{
		"acquire/repeat": true, "backend/redis.TestKeysDoNotCollide": true, "backend/redis.FuzzKeys": true,
		"acquire/none": false, "backend/redis.TestNone": false, "backend/none.TestKeysDoNotCollide": false, "TestKeysDoNotCollide": false,
		"backend/redis.hashed": false, "backend/redis.New": false, "memory.New": false,
	} {
		if exists(t, name, ids) != want {
			t.Errorf("%q exists: %v", name, !want)
		}
	}
}

// rows reads the tables of doc/cases.md.
func rows(t *testing.T) (all []row) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "doc", "cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		number, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue
		}
		if len(cells) != 5 {
			t.Errorf("case %d has %d columns, want 5", number, len(cells))
			continue
		}
		r := row{number: number, result: strings.TrimSpace(cells[4])}
		for law := range strings.SplitSeq(cells[2], ",") {
			n, err := strconv.Atoi(strings.TrimSpace(law))
			if err != nil {
				t.Errorf("case %d: the law is %q", number, law)
			}
			r.laws = append(r.laws, n)
		}
		for name := range strings.SplitSeq(cells[3], ",") {
			r.names = append(r.names, strings.Trim(strings.TrimSpace(name), "`"))
		}
		all = append(all, r)
	}
	return all
}

// conformanceIDs are those of the suite's tables.
func conformanceIDs(t *testing.T) (ids []string) {
	t.Helper()
	inTest := regexp.MustCompile(`^[a-z]+/[a-z-]+$`)
	for _, f := range parsed(t, "conformance", func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok && len(lit.Elts) > 3 {
				if id, ok := lit.Elts[0].(*ast.BasicLit); ok && id.Kind == token.STRING {
					if s, _ := strconv.Unquote(id.Value); inTest.MatchString(s) {
						ids = append(ids, s)
					}
				}
			}
			return true
		})
	}
	if len(ids) < 50 {
		t.Fatalf("only %d ids were found in package conformance", len(ids))
	}
	return ids
}

// exists says whether name is an id of the suite or, behind the folder of its
// package and a dot, a test.
func exists(t *testing.T, name string, ids []string) bool {
	t.Helper()
	folder, function, ok := strings.Cut(name, ".")
	if !ok {
		return slices.Contains(ids, name)
	}
	if !regexp.MustCompile("^(Test|Fuzz|Example)").MatchString(function) {
		return false
	}
	for _, f := range parsed(t, folder, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == function {
				return true
			}
		}
	}
	return false
}

// parsed returns some files of a folder, which may not be there.
func parsed(t *testing.T, folder string, want func(name string) bool) (files []*ast.File) {
	t.Helper()
	entries, _ := os.ReadDir(filepath.Join(root, folder))
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".go" || !want(e.Name()) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, folder, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// designLaws are the names of the laws in doc/design.md, in order.
func designLaws(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "doc", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## The fifteen laws\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for i, m := range regexp.MustCompile(`(?m)^(\d+)\. \*\*([A-Za-z ]+)\.\*\* \S`).FindAllStringSubmatch(section, -1) {
		if m[1] != strconv.Itoa(i+1) {
			t.Errorf("law %s stands at place %d", m[1], i+1)
		}
		names = append(names, strings.ToLower(m[2]))
	}
	return names
}
