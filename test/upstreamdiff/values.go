package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strings"
)

// anything is the end of a string that is known only at run time.
const anything = "*"

// depth limits the search for values. A value is found through a few assignments and calls.
const depth = 8

// strings returns the constant strings that an expression can have.
func (p place) strings(e ast.Expr) (found []string) {
	for _, v := range p.values(e, depth) {
		if v.Kind() == constant.String {
			found = append(found, constant.StringVal(v))
		}
	}
	return found
}

// value returns the constant value of an expression, or nil.
func (p place) value(e ast.Expr) constant.Value {
	if found := p.values(e, depth); len(found) == 1 {
		return found[0]
	}
	return nil
}

// values returns the constants that an expression can have: those of an identifier's declaration,
// of all assignments to a variable, and of the arguments of all calls if it is a parameter.
func (p place) values(e ast.Expr, depth int) []constant.Value {
	if depth == 0 || e == nil {
		return nil
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		return []constant.Value{constant.MakeFromLiteral(e.Value, e.Kind, 0)}
	case *ast.ParenExpr:
		return p.values(e.X, depth)
	case *ast.UnaryExpr:
		return p.unary(e, depth)
	case *ast.BinaryExpr:
		return p.binary(e, depth)
	case *ast.Ident:
		return p.identifier(e.Name, depth)
	case *ast.SelectorExpr:
		return p.selector(e, depth)
	case *ast.CallExpr:
		return p.call(e, depth)
	case *ast.CompositeLit:
		if lastName(e.Type) == "Duration" && len(e.Elts) == 1 { // metav1.Duration{Duration: d}
			if kv, ok := e.Elts[0].(*ast.KeyValueExpr); ok {
				return p.values(kv.Value, depth)
			}
		}
	}
	return nil
}

func (p place) unary(e *ast.UnaryExpr, depth int) (found []constant.Value) {
	for _, v := range p.values(e.X, depth) {
		switch {
		case e.Op == token.AND:
			found = append(found, v)
		case e.Op == token.SUB && v.Kind() != constant.String, e.Op == token.NOT && v.Kind() == constant.Bool:
			found = append(found, constant.UnaryOp(e.Op, v, 0))
		}
	}
	return found
}

func (p place) binary(e *ast.BinaryExpr, depth int) (found []constant.Value) {
	right := p.values(e.Y, depth)
	for _, x := range p.values(e.X, depth) {
		if len(right) == 0 && x.Kind() == constant.String && e.Op == token.ADD {
			found = append(found, constant.MakeString(constant.StringVal(x)+anything))
		}
		for _, y := range right {
			isText := x.Kind() == constant.String
			switch {
			case isText != (y.Kind() == constant.String), x.Kind() == constant.Bool, y.Kind() == constant.Bool:
			case isText && e.Op != token.ADD:
			case e.Op == token.SHL || e.Op == token.SHR:
				if n, ok := constant.Uint64Val(y); ok {
					found = append(found, constant.Shift(x, e.Op, uint(n)))
				}
			case e.Op == token.ADD || e.Op == token.SUB || e.Op == token.MUL:
				found = append(found, constant.BinaryOp(x, e.Op, y))
			}
		}
	}
	return found
}

func (p place) identifier(name string, depth int) []constant.Value {
	switch name {
	case "true", "false":
		return []constant.Value{constant.MakeBool(name == "true")}
	}
	for i := len(p.outer) - 1; i >= 0; i-- {
		inside := place{p.pkg, p.file, p.outer[:i+1], p.outer[i]}
		if index := parameter(p.outer[i], name); index >= 0 {
			return inside.arguments(index, depth-1)
		}
		if found, ok := inside.assigned(name, depth-1); ok {
			return found
		}
	}
	if declared, ok := p.pkg.values[name]; ok {
		return declared.values(declared.node.(ast.Expr), depth-1)
	}
	return nil
}

// selector evaluates package.Name and the fields of structs.
func (p place) selector(e *ast.SelectorExpr, depth int) []constant.Value {
	x, ok := e.X.(*ast.Ident)
	if !ok {
		return nil
	}
	other := p.imported(x.Name)
	if other == nil {
		return nil
	}
	declared, ok := other.values[e.Sel.Name]
	if !ok {
		return nil
	}
	return declared.values(declared.node.(ast.Expr), depth-1)
}

// wrappers are functions that return their argument, or a pointer to it.
var wrappers = map[string]bool{"To": true, "Clean": true, "string": true, "int": true, "int32": true, "int64": true, "Duration": true, "Feature": true, "NewString": true}

func (p place) call(e *ast.CallExpr, depth int) (found []constant.Value) {
	name := lastName(e.Fun)
	switch {
	case len(e.Args) == 1 && wrappers[name]:
		return p.values(e.Args[0], depth)
	case len(e.Args) == 3 && name == "BuildFQName":
		for _, namespace := range p.strings(e.Args[0]) {
			for _, subsystem := range p.strings(e.Args[1]) {
				for _, last := range p.strings(e.Args[2]) {
					found = append(found, constant.MakeString(metricName(namespace, subsystem, last)))
				}
			}
		}
	case len(e.Args) == 2 && name == "Join": // filepath.Join
		for _, a := range p.strings(e.Args[0]) {
			for _, b := range p.strings(e.Args[1]) {
				found = append(found, constant.MakeString(strings.TrimSuffix(a, "/")+"/"+b))
			}
		}
	}
	return found
}

// parameter returns the index of a function's parameter, or -1.
func parameter(function ast.Node, name string) int {
	kind := functionType(function)
	index := 0
	for _, field := range kind.Params.List {
		for _, n := range field.Names {
			if n.Name == name {
				return index
			}
			index++
		}
	}
	return -1
}

func functionType(function ast.Node) *ast.FuncType {
	if declared, ok := function.(*ast.FuncDecl); ok {
		return declared.Type
	}
	return function.(*ast.FuncLit).Type
}

// arguments returns the values of an argument in all calls of the function that p is.
func (p place) arguments(index, depth int) (found []constant.Value) {
	if depth == 0 {
		return nil
	}
	name := p.functionName()
	for _, caller := range p.pkg.tree.packages {
		if caller == nil || caller != p.pkg && !ast.IsExported(name) {
			continue
		}
		_, local := p.node.(*ast.FuncLit)
		for _, call := range caller.calls[name] {
			e := call.node.(*ast.CallExpr)
			if local && (len(call.outer) == 0 || call.outer[0] != p.outer[0]) {
				continue
			}
			if index < len(e.Args) && (caller == p.pkg || call.calls(e, p.pkg)) {
				found = append(found, call.values(e.Args[index], depth)...)
			}
		}
	}
	return found
}

// calls reports whether a call is one of a function of the package.
func (p place) calls(e *ast.CallExpr, of *goPackage) bool {
	selector, ok := e.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && slices.Contains(p.pkg.imports, of.path) && p.imported(x.Name) == of
}

// functionName is the name of a declared function, or of the variable that a literal is assigned to.
func (p place) functionName() string {
	if declared, ok := p.node.(*ast.FuncDecl); ok {
		return declared.Name.Name
	}
	if len(p.outer) < 2 {
		return ""
	}
	name := ""
	outer := p.at(p.outer[len(p.outer)-2])
	outer.walk(func(at place) bool {
		if assign, ok := at.node.(*ast.AssignStmt); ok {
			for i, value := range assign.Rhs {
				if value == p.node && i < len(assign.Lhs) {
					name = lastName(assign.Lhs[i])
				}
			}
		}
		return name == ""
	})
	return name
}

// assigned returns the values of a variable or constant of the function that p is, and whether it
// has one of that name.
func (p place) assigned(name string, depth int) (found []constant.Value, ok bool) {
	at := func(lhs []ast.Expr, rhs []ast.Expr) {
		for i, l := range lhs {
			if id, isIdent := l.(*ast.Ident); isIdent && id.Name == name {
				ok = true
				if len(rhs) == len(lhs) {
					found = append(found, p.values(rhs[i], depth)...)
				}
			}
		}
	}
	ast.Inspect(p.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.ASSIGN || n.Tok == token.DEFINE {
				at(n.Lhs, n.Rhs)
			}
		case *ast.ValueSpec:
			var names []ast.Expr
			for _, id := range n.Names {
				names = append(names, id)
			}
			at(names, n.Values)
		case *ast.RangeStmt:
			for _, v := range []ast.Expr{n.Key, n.Value} {
				if id, isIdent := v.(*ast.Ident); isIdent && id.Name == name {
					ok = true
					found = append(found, p.elements(n.X, v == n.Key, depth)...)
				}
			}
		}
		return true
	})
	return found, ok
}

// elements returns the constant elements of a list or map literal, or a map's keys.
func (p place) elements(e ast.Expr, keys bool, depth int) (found []constant.Value) {
	list, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, element := range list.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			if element = kv.Value; keys {
				element = kv.Key
			}
		}
		found = append(found, p.values(element, depth)...)
	}
	return found
}

// literals returns all strings that packages contain. A name that is among them is not missing, even if
// it is not known how it is used.
func literals(packages []*goPackage) map[string]bool {
	found := map[string]bool{}
	for _, p := range packages {
		for at := range all[*ast.BasicLit](p) {
			for _, text := range at.strings(at.node.(*ast.BasicLit)) {
				found[text] = true
			}
		}
	}
	return found
}
