package layers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"testing"
)

// module and listed are what go list says of modules and packages.
type module struct {
	Path string
	Dir  string
	Main bool
}

type listed struct {
	ImportPath string
	Name       string
	Standard   bool
	GoFiles    []string // but for tests
	Imports    []string
	Deps       []string
	Module     *module
}

// modules are those of the workspace, or the root alone.
func modules(t *testing.T) []module {
	return decode[module](t, "../..", "list", "-m", "-json=Path,Dir,Main")
}

// list describes all packages of the module that dir belongs to.
func list(t *testing.T, dir string, flags ...string) []listed {
	args := append([]string{"list", "-json=ImportPath,Name,Standard,GoFiles,Imports,Deps,Module"}, flags...)
	if dir == "." {
		for _, m := range modules(t) {
			args = append(args, m.Path+"/...")
		}
	} else {
		args = append(args, "./...")
	}
	return decode[listed](t, dir, args...)
}

func decode[T any](t *testing.T, dir string, args ...string) []T {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, &stderr)
	}
	var all []T
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var v T
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
}
