package main

import (
	"go/ast"
	"go/constant"
	gopath "path"
	"regexp"
	"slices"
	"strings"
)

const anyMethod = "any method"

// endpoints collects the methods of paths.
type endpoints map[string][]string

var (
	restPath = regexp.MustCompile(`/?\{[a-zA-Z]+:\*\}|\{\$\}`)
	wildcard = regexp.MustCompile(`\{[a-zA-Z]+\}`)
)

func (e endpoints) add(path, method string) {
	path = wildcard.ReplaceAllString(restPath.ReplaceAllString(path, ""), "{}")
	if path = gopath.Clean("/" + path); path != "/" && !slices.Contains(e[path], method) {
		e[path] = append(e[path], method)
	}
}

func (e endpoints) items() items {
	found := items{}
	for path, methods := range e {
		if slices.Contains(methods, anyMethod) {
			methods = []string{anyMethod}
		}
		slices.Sort(methods)
		found[path] = strings.Join(methods, " ")
	}
	return found
}

// endpoints returns the paths of the kubelet's HTTP API with their methods.
func (u *upstream) endpoints() items {
	found := endpoints{}
	for _, p := range u.below(kubernetes + "/pkg/kubelet/server") {
		for _, function := range p.funcs {
			if !strings.Contains(function.node.(*ast.FuncDecl).Name.Name, "Disabled") {
				found.read(function)
			}
		}
	}
	return found.items()
}

// read follows the statements of a function: Path sets the root of the routes after it.
func (e endpoints) read(function place) {
	root := ""
	function.walk(func(at place) bool {
		call, ok := at.node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch name := selector.Sel.Name; name {
		case "Path":
			if method := routeMethod(selector.X); method != nil { // a table of routes
				e.table(function, at, root, method.Args[0])
			} else if paths := at.strings(call.Args[0]); len(paths) > 0 {
				root = paths[0]
			}
		case "GET", "POST", "PUT", "DELETE":
			for _, path := range at.strings(call.Args[0]) {
				e.add(root+"/"+path, name)
			}
		case "Handle":
			if len(call.Args) == 2 && !strings.Contains(lastName(call.Args[1]), "Disabled") {
				for _, path := range at.strings(call.Args[0]) {
					e.add(path, anyMethod)
				}
			}
		case "Install", "InstallHandler":
			if of := lastName(selector.X); at.imported(of) != nil {
				e.add("/"+of, anyMethod)
			} else if strings.HasPrefix(of, "SLI") {
				e.add("/metrics/slis", anyMethod)
			}
		}
		return true
	})
}

// routeMethod returns the call of ws.Method(m) in ws.Method(m).Path(p), or nil.
func routeMethod(e ast.Expr) *ast.CallExpr {
	if call, ok := e.(*ast.CallExpr); ok && lastName(call.Fun) == "Method" {
		return call
	}
	return nil
}

// table adds the routes of a function that takes them from a table: all paths that it has.
func (e endpoints) table(function, at place, root string, method ast.Expr) {
	function.walk(func(p place) bool {
		if literal, ok := p.node.(*ast.BasicLit); ok {
			for _, path := range p.strings(literal) {
				if strings.HasPrefix(path, "/") {
					for _, m := range at.values(method, depth) {
						e.add(root+path, constant.StringVal(m))
					}
				}
			}
		}
		return true
	})
}
