package architecture

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// apiserver is the directory of the module of the lone node's API server, and begins the names of its files.
const apiserver = "apiserver"

// sourceFiles returns the Go files that are no tests, below internal/ and in the module of the API server, by their
// names: those below internal/ without it, as in cri/dial.go, the others as in apiserver/main.go.
func sourceFiles() (map[string]string, error) {
	files := map[string]string{}
	for _, root := range []struct{ dir, prefix string }{{"..", ""}, {filepath.Join("..", "..", apiserver), apiserver}} {
		err := filepath.WalkDir(root.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root.dir, path)
			files[filepath.ToSlash(filepath.Join(root.prefix, name))] = path
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
