package resource

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// TestLoopDoesNotWaitForDisk: what the sync loop calls on the managers (allocate and release) writes no file. A
// pod's worker calls Written before it acts.
func TestLoopDoesNotWaitForDisk(t *testing.T) {
	for file, functions := range map[string][]string{
		"cpu/cpus.go":          {"Allocate", "AllocatePod", "update", "Release"},
		"memory/memory.go":     {"Allocate", "AllocatePod", "update", "Release"},
		"device/candidates.go": {"releaseAll"},
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, name := range functions {
				if f.Name.Name != name {
					continue
				}
				found++
				ast.Inspect(f, func(n ast.Node) bool {
					if call, ok := n.(*ast.SelectorExpr); ok && (call.Sel.Name == "write" || call.Sel.Name == "save" || call.Sel.Name == "Written") {
						t.Errorf("%s: %s calls %s, which waits for the disk", file, name, call.Sel.Name)
					}
					return true
				})
			}
		}
		if found != len(functions) {
			t.Errorf("%s: found %d of %v", file, found, functions)
		}
	}
}
