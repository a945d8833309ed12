package readme_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Every exported function and method has an example, which go test runs where it
// has an output.
func TestEveryVerbHasAnExample(t *testing.T) {
	for _, folder := range []string{
		"backend", "backend/memory", "backend/quorum", "backend/redis", "fencing", "fencing/fencehttp", "mutex", "retry", "telemetry",
	} {
		examples := map[string]bool{}
		for _, f := range parsed(t, folder, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
			for _, name := range functions(f) {
				if name, ok := strings.CutPrefix(name, "Example"); ok {
					examples[name] = true
				}
			}
		}
		verbs := 0
		for _, f := range parsed(t, folder, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
			for _, name := range functions(f) {
				_, method, _ := strings.Cut(name, "_")
				if ast.IsExported(name) && !slices.Contains([]string{"Error", "Unwrap", "Is", "ErrorType"}, method) {
					verbs++
					if !examples[name] {
						t.Errorf("%s: there is no Example%s", folder, name)
					}
				}
			}
		}
		if verbs == 0 {
			t.Errorf("%s: no verb was found", folder)
		}
	}
}

// functions are the names of a file's functions and, behind that of their type,
// exported methods.
func functions(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		switch {
		case !ok:
		case fn.Recv == nil:
			names = append(names, fn.Name.Name)
		case fn.Name.IsExported():
			of := fn.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if id, ok := of.(*ast.Ident); ok {
				names = append(names, id.Name+"_"+fn.Name.Name)
			}
		}
	}
	return names
}
