package readme_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// blocks returns the fenced blocks of the README in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(readme), -1) {
		if m[1] == language {
			all = append(all, m[2])
		}
	}
	return all
}

// sources returns the Go files here, which the tests compile and run.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A block is whole lines of one file, from the left margin or out of a function;
// one with a package clause is a whole file.
func TestEveryGoBlockIsCompiledAndRun(t *testing.T) {
	files := sources(t)
	find := func(block string) bool {
		for _, text := range files {
			if strings.HasPrefix(block, "package ") || strings.Contains(block, "\npackage ") {
				if text == block {
					return true
				}
			} else if strings.Contains("\n"+text, "\n"+block) || strings.Contains("\n"+text, "\n"+indent(block)) {
				return true
			}
		}
		return false
	}
	found := blocks(t, "go")
	if len(found) < 6 {
		t.Errorf("%d Go blocks were found; was the README read rightly?", len(found))
	}
	for _, block := range found {
		if !find(block) {
			t.Errorf("no file here has this block of the README:\n%s", block)
		}
	}
}

func indent(block string) string {
	return regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(block, "\t$1")
}

func TestLinksLeadToFiles(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(readme), -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Error(err)
		}
	}
}

// What the README shows as the output of a command is its output, but for the
// times, and the names of those who may be any.
func TestCommandsPrintWhatTheReadmeShows(t *testing.T) {
	const prompt = "$ go run "
	ran := 0
	for _, block := range blocks(t, "text") {
		command, want, _ := strings.Cut(block, "\n")
		path, ok := strings.CutPrefix(command, prompt)
		if !ok {
			t.Errorf("a text block does not begin with a command: %q", command)
			continue
		}
		ran++
		var out string
		for range 3 { // a machine that stalls for a second changes the story
			if out = goRun(t, path); plain(out) == plain(want) {
				break
			}
		}
		if plain(out) != plain(want) {
			t.Errorf("%s prints\n%s\nthe README shows\n%s", command, out, want)
		}
	}
	if ran < 2 {
		t.Errorf("%d commands were run; want the quickstart and the first program", ran)
	}
}

func goRun(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", path)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go run %s: %v\n%s", path, err, out)
	}
	return string(out)
}

func plain(out string) string {
	return regexp.MustCompile(`(?m)^ *\d+ ms  (token \d+)  (ann|bob|cid) `).ReplaceAllString(out, "$1 ")
}
