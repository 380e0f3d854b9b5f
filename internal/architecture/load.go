package architecture

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

// loaded has packages by their patterns: tests share them.
var loaded sync.Map

// load reads all packages that match the patterns, with their types.
func load(patterns ...string) ([]*packages.Package, error) { return loadIn(".", nil, patterns...) }

// asBuilt are the settings with which the programs of the module of the API server are built: what it imports is
// then in the cache.
var asBuilt = []string{"CGO_ENABLED=0", "GOFLAGS=-trimpath"}

// loadIn is load for the module that has the directory.
func loadIn(dir string, settings []string, patterns ...string) ([]*packages.Package, error) {
	once, _ := loaded.LoadOrStore(dir+" "+strings.Join(patterns, " "), sync.OnceValues(func() ([]*packages.Package, error) {
		found, err := packages.Load(&packages.Config{
			Dir: dir, Env: append(os.Environ(), settings...),
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedExportFile,
		}, patterns...)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			for _, e := range p.Errors {
				return nil, e
			}
		}
		return found, nil
	}))
	return once.(func() ([]*packages.Package, error))()
}
