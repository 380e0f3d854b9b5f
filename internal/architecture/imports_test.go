package architecture

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports maps each non-test Go file below internal/ to the packages it imports.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	root := filepath.Join("..")
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		found[name] = nil
		for _, spec := range file.Imports {
			target, _ := strconv.Unquote(spec.Path.Value)
			found[name] = append(found[name], target)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// packageOf returns the first directory below internal/: subdirectories belong to it.
func packageOf(file string) string { return strings.Split(filepath.ToSlash(file), "/")[0] }

func layerOf(pkg string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, pkg) })
}

func TestPackageImportsOnlyInnerLayers(t *testing.T) {
	for file, targets := range imports(t) {
		from := packageOf(file)
		if from == "architecture" {
			continue
		}
		if layerOf(from) < 0 {
			t.Errorf("package %s is in no layer: add it to layers.go and to ARCHITECTURE.md", from)
			continue
		}
		for _, target := range targets {
			rest, ok := strings.CutPrefix(target, module+"/internal/")
			if !ok {
				continue
			}
			if to := packageOf(rest); to != from && layerOf(to) >= layerOf(from) {
				t.Errorf("%s imports %s: layer %d must not import layer %d; declare a small interface where it is used and let agent connect them",
					file, to, layerOf(from), layerOf(to))
			}
		}
	}
}

func TestRestrictedImports(t *testing.T) {
	for file, targets := range imports(t) {
		for _, target := range targets {
			for _, rule := range restricted {
				if target != rule.path && !strings.HasPrefix(target, rule.path+"/") {
					continue
				}
				if !slices.Contains(rule.packages, packageOf(file)) {
					t.Errorf("%s imports %s: %s", file, target, rule.why)
				}
			}
		}
	}
}
