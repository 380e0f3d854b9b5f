package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tree parses Go packages by import path. It reads syntax only and checks no types, so that it needs
// neither the dependencies nor the Go version of what it reads.
type tree struct {
	directory func(path string) (string, error)
	packages  map[string]*goPackage // nil entries have no source here
}

// goPackage is a parsed package, as it is built on Linux.
type goPackage struct {
	tree    *tree
	path    string
	imports []string
	files   []*ast.File
	values  map[string]place // constants and variables of the package, by name
	funcs   map[string]place // functions, and methods as Type.Method
	types   map[string]place
	calls   map[string][]place // calls by the name of the called function or method
}

// place is a node with what is needed to find the meaning of its identifiers.
type place struct {
	pkg   *goPackage
	file  *ast.File
	outer []ast.Node // enclosing functions, from the outside to the inside
	node  ast.Node
}

func (p place) at(n ast.Node) place { p.node = n; return p }

func newTree(directory func(string) (string, error)) *tree {
	return &tree{directory: directory, packages: map[string]*goPackage{}}
}

// load returns a package, or nil if its source is not part of the tree.
func (t *tree) load(path string) (*goPackage, error) {
	if p, ok := t.packages[path]; ok {
		return p, nil
	}
	t.packages[path] = nil
	dir, err := t.directory(path)
	if errors.Is(err, errNotCompared) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false
	found, err := context.ImportDir(dir, 0)
	if err != nil {
		return nil, fmt.Errorf("read package %s: %w", path, err)
	}
	p := &goPackage{tree: t, path: path, imports: found.Imports,
		values: map[string]place{}, funcs: map[string]place{}, types: map[string]place{}, calls: map[string][]place{}}
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", path, err)
		}
		p.files = append(p.files, file)
		p.declare(file)
	}
	t.packages[path] = p
	for call := range all[*ast.CallExpr](p) {
		name := lastName(call.node.(*ast.CallExpr).Fun)
		p.calls[name] = append(p.calls[name], call)
	}
	return p, nil
}

// reach loads the packages that path imports, directly or not, and returns all in order.
func (t *tree) reach(path string) ([]*goPackage, error) {
	seen := map[string]*goPackage{}
	for queue := []string{path}; len(queue) > 0; queue = queue[1:] {
		next := queue[0]
		if _, ok := seen[next]; ok || !strings.Contains(next, ".") && !strings.HasPrefix(next, ourModule) {
			continue
		}
		p, err := t.load(next)
		if err != nil {
			return nil, err
		}
		if seen[next] = p; p != nil {
			queue = append(queue, p.imports...)
		}
	}
	maps.DeleteFunc(seen, func(_ string, p *goPackage) bool { return p == nil })
	sorted := slices.SortedFunc(maps.Values(seen), func(a, b *goPackage) int { return strings.Compare(a.path, b.path) })
	return sorted, nil
}

func (p *goPackage) declare(file *ast.File) {
	here := place{pkg: p, file: file}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil && len(d.Recv.List) > 0 {
				name = lastName(d.Recv.List[0].Type) + "." + name
			}
			p.funcs[name] = here.at(d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					p.types[spec.Name.Name] = here.at(spec)
				case *ast.ValueSpec:
					for i, name := range spec.Names {
						if i < len(spec.Values) {
							p.values[name.Name] = here.at(spec.Values[i])
						}
					}
				}
			}
		}
	}
}

// all yields the places of all nodes of a type.
func all[N ast.Node](p *goPackage) func(func(place) bool) {
	return func(yield func(place) bool) {
		for _, file := range p.files {
			if !(place{pkg: p, file: file, node: file}).walk(func(at place) bool {
				_, ok := at.node.(N)
				return !ok || yield(at)
			}) {
				return
			}
		}
	}
}

// walk visits the node and all below it until visit returns false, and returns whether it never did.
func (p place) walk(visit func(place) bool) bool {
	more := true
	outer := p.outer
	var stack []ast.Node
	ast.Inspect(p.node, func(n ast.Node) bool {
		if n == nil {
			if isFunc(stack[len(stack)-1]) {
				outer = outer[:len(outer)-1]
			}
			stack = stack[:len(stack)-1]
			return true
		}
		if !more {
			return false
		}
		more = visit(place{p.pkg, p.file, slices.Clone(outer), n})
		stack = append(stack, n)
		if isFunc(n) {
			outer = append(outer, n)
		}
		return true
	})
	return more
}

func isFunc(n ast.Node) bool {
	switch n.(type) {
	case *ast.FuncDecl, *ast.FuncLit:
		return true
	}
	return false
}

// imported returns the package that a name stands for in a file, or nil.
func (p place) imported(name string) *goPackage {
	for _, spec := range p.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		local := defaultName(path)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == name {
			found, err := p.pkg.tree.load(path)
			if err != nil {
				return nil // a package of another system
			}
			return found
		}
	}
	return nil
}

// defaultName guesses the name of a package from its path.
func defaultName(path string) string {
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" && !strings.HasPrefix(path, "k8s.io/api") {
		last = parts[len(parts)-2]
	}
	return last
}

// lastName is the last identifier of an expression: of a.b.c(x) it is c.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return lastName(e.X)
	case *ast.ParenExpr:
		return lastName(e.X)
	case *ast.UnaryExpr:
		return lastName(e.X)
	case *ast.IndexExpr:
		return lastName(e.X)
	case *ast.IndexListExpr:
		return lastName(e.X)
	case *ast.CallExpr:
		return lastName(e.Fun)
	case *ast.CompositeLit:
		return lastName(e.Type)
	}
	return ""
}
