package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// writers are functions of package os that create or replace a file without fsync.
var writers = []string{"WriteFile", "Rename", "Create", "CreateTemp"}

// writesFiles reports whether the source file uses a writer or os.O_CREATE.
func writesFiles(file *ast.File) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		use, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := use.X.(*ast.Ident); ok && of.Name == "os" && (slices.Contains(writers, use.Sel.Name) || use.Sel.Name == "O_CREATE") {
			found = true
		}
		return true
	})
	return found
}

// TestStateFilesAreWrittenByCheckpoint: code that may leave an empty file after a crash of the
// host must be listed in unsynced, with the reason why that is harmless.
func TestStateFilesAreWrittenByCheckpoint(t *testing.T) {
	seen := map[string]bool{}
	files, err := sourceFiles()
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range files {
		if packageOf(name) == "checkpoint" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !writesFiles(file) {
			continue
		}
		seen[name] = true
		if unsynced[name] == "" {
			t.Errorf("%s writes files: use checkpoint.Replace, or explain in state_files.go why a crash may leave them empty", name)
		}
	}
	for name := range unsynced {
		if !seen[name] {
			t.Errorf("%s writes no files: remove it from unsynced", name)
		}
	}
}

func TestWritesFiles(t *testing.T) {
	for text, want := range map[string]bool{
		`os.WriteFile("x", nil, 0)`:               true,
		`os.Rename("x", "y")`:                     true,
		`os.OpenFile("x", os.O_CREATE, 0)`:        true,
		`f := os.CreateTemp; _ = f`:               true,
		`os.OpenFile("x", os.O_RDONLY, 0)`:        false,
		`checkpoint.Replace("x", nil, 0)`:         false,
		`_ = struct{ Rename int }{}.Rename`:       false,
		`os.ReadFile("os.WriteFile(not a call)")`: false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package p\nfunc f() {\n"+text+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := writesFiles(file); got != want {
			t.Errorf("writesFiles(%s) = %v", text, got)
		}
	}
}
