package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestEveryFeatureIsRead: a gate is read by the kubelet or listed as having no effect.
func TestEveryFeatureIsRead(t *testing.T) {
	read := featuresRead(t, "..", "../../cmd")
	for field := range structFields(reflect.TypeFor[Features]()) {
		if _, ineffective := gatesWithoutEffect[field.Name]; ineffective == read[field.Name] {
			t.Errorf("Features.%s: read %v, listed as without effect %v", field.Name, read[field.Name], ineffective)
		}
	}
	text, err := os.ReadFile("../../docs/node.md")
	if err != nil {
		t.Fatal(err)
	}
	_, docs, _ := strings.Cut(string(text), "\n## Feature gates without effect\n")
	docs, _, _ = strings.Cut(docs, "\n## ")
	for name, reason := range gatesWithoutEffect {
		if g, known := knownGates()[name]; !known || g.locked || reason == "" {
			t.Errorf("%s is listed as without effect, but is unknown or locked or has no reason", name)
		}
		if !strings.Contains(docs, "| `"+name+"` | "+reason+" |\n") {
			t.Errorf("docs/node.md does not say that %s has no effect", name)
		}
	}
	if n := strings.Count(docs, "\n| `"); n != len(gatesWithoutEffect) {
		t.Errorf("docs/node.md lists %d gates without effect, there are %d", n, len(gatesWithoutEffect))
	}
}

// featuresRead finds the fields of Features that the source code reads.
func featuresRead(t *testing.T, roots ...string) map[string]bool {
	t.Helper()
	read := map[string]bool{}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil {
				recordFeatureReads(file, read)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return read
}

// recordFeatureReads records x.Features.Gate, and f.Gate in a function that has f := x.Features.
func recordFeatureReads(file *ast.File, read map[string]bool) {
	for _, decl := range file.Decls {
		var names []string
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, from := range n.Rhs {
					if into, ok := n.Lhs[i].(*ast.Ident); ok && isFeatures(from) {
						names = append(names, into.Name)
					}
				}
			case *ast.SelectorExpr:
				of, named := n.X.(*ast.Ident)
				if isFeatures(n.X) || named && slices.Contains(names, of.Name) {
					read[n.Sel.Name] = true
				}
			}
			return true
		})
	}
}

// isFeatures finds x.Features and &x.Features.
func isFeatures(e ast.Expr) bool {
	if address, ok := e.(*ast.UnaryExpr); ok {
		e = address.X
	}
	selector, ok := e.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Features"
}

func TestGateWithoutEffect(t *testing.T) {
	c := mustLoad(t, "--feature-gates=RuntimeClassInImageCriApi=true,EventedPLEG=false,ReloadKubeletClientCAFile=false,EnvFiles=true")
	want := []string{
		"feature gate ReloadKubeletClientCAFile=false has no effect: the file is always reloaded when it changes",
		"feature gate RuntimeClassInImageCriApi=true has no effect: images are not distinguished by runtime class",
	}
	if !slices.Equal(c.Notices, want) {
		t.Errorf("notices %q, want %q", c.Notices, want)
	}
	if c.Gate("RuntimeClassInImageCriApi") || !c.Gate("ReloadKubeletClientCAFile") || !c.Gate("EnvFiles") {
		t.Error("a gate without effect does not report its default, or another not its value")
	}
}
