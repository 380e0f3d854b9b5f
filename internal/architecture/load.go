package architecture

import (
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

// loaded has packages by their patterns: tests share them.
var loaded sync.Map

// load reads all packages that match the patterns, with their types.
func load(patterns ...string) ([]*packages.Package, error) {
	once, _ := loaded.LoadOrStore(strings.Join(patterns, " "), sync.OnceValues(func() ([]*packages.Package, error) {
		found, err := packages.Load(&packages.Config{
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
