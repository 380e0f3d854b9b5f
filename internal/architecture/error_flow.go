package architecture

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "swiftlet"

// errorFlow says for every function of the module where the errors that it returns come from. It follows
// calls and variables, and function values only where it must (see values). It ignores the order of
// statements, so that it may find too many errors.
type errorFlow struct {
	// from has the functions of the module whose errors a function returns.
	from map[string][]string
	// origins has the functions that return an error that begins in them: they make it, or get it from
	// outside of the module or from a function value.
	origins map[string]token.Position
	// makers have one statement, which returns a new error. Their errors begin where they are called.
	makers map[string]bool
}

// loadErrorFlow reads all packages that match the patterns.
func loadErrorFlow(patterns ...string) (*errorFlow, error) {
	found, err := load(patterns...)
	if err != nil {
		return nil, err
	}
	f := &errorFlow{from: map[string][]string{}, origins: map[string]token.Position{}, makers: map[string]bool{}}
	for _, add := range []func(*packages.Package, ast.Decl){f.addMaker, f.addMaker, f.addDecl} { // makers call makers
		for _, p := range found {
			for _, file := range p.Syntax {
				for _, d := range file.Decls {
					add(p, d)
				}
			}
		}
	}
	return f, nil
}

func (f *errorFlow) addMaker(p *packages.Package, d ast.Decl) {
	declared, ok := d.(*ast.FuncDecl)
	if !ok || declared.Body == nil || len(declared.Body.List) != 1 {
		return
	}
	last, ok := declared.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(last.Results) != 1 {
		return
	}
	scan := functionScan{info: p.TypesInfo, makers: f.makers}
	if made := scan.of(last.Results[0]); made.begins && len(made.functions) == 0 {
		function, _ := p.TypesInfo.Defs[declared.Name].(*types.Func)
		f.makers[function.FullName()] = true
	}
}

func (f *errorFlow) addDecl(p *packages.Package, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body != nil {
			function, _ := p.TypesInfo.Defs[d.Name].(*types.Func)
			f.addFunction(p, function, d.Body)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok {
				f.addTable(p, values)
			}
		}
	}
}

func (f *errorFlow) addFunction(p *packages.Package, function *types.Func, body *ast.BlockStmt) {
	results := function.Signature().Results()
	if results.Len() == 0 || !isError(results.At(results.Len()-1).Type()) {
		return
	}
	scan := functionScan{info: p.TypesInfo, makers: f.makers, result: results.At(results.Len() - 1), variables: map[types.Object]sources{}}
	// Twice, as a loop may use a variable above its assignment.
	ast.Inspect(body, scan.assignments)
	ast.Inspect(body, scan.assignments)
	ast.Inspect(body, scan.returns)
	ast.Inspect(body, scan.values)
	f.from[function.FullName()] = scan.returned.functions
	if scan.returned.begins {
		f.origins[function.FullName()] = p.Fset.Position(scan.origin)
	}
}

// addTable adds a variable: a function that uses it may return the errors of every function in it.
func (f *errorFlow) addTable(p *packages.Package, values *ast.ValueSpec) {
	var functions []string
	for _, value := range values.Values {
		ast.Inspect(value, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if function, ok := p.TypesInfo.Uses[id].(*types.Func); ok && isOwn(function) {
					functions = append(functions, function.FullName())
				}
			}
			return true
		})
	}
	for _, name := range values.Names {
		f.from[p.PkgPath+"."+name.Name] = functions
	}
}

// reach returns the roots and the functions whose errors they return, directly or not, without those of
// stop.
func (f *errorFlow) reach(roots []string, stop ...string) map[string]bool {
	seen := map[string]bool{}
	for queue := slices.Clone(roots); len(queue) > 0; queue = queue[1:] {
		if name := queue[0]; !seen[name] && !slices.Contains(stop, name) {
			seen[name] = true
			queue = append(queue, f.from[name]...)
		}
	}
	return seen
}

// sources are where an error may come from.
type sources struct {
	begins    bool     // in the function itself
	functions []string // of the module
}

func (s sources) with(other sources) sources {
	return sources{s.begins || other.begins, append(slices.Clip(s.functions), other.functions...)}
}

// functionScan finds the sources of the errors that one function returns.
type functionScan struct {
	info      *types.Info
	makers    map[string]bool
	result    *types.Var
	variables map[types.Object]sources // of type error or []error
	returned  sources
	origin    token.Pos
}

func (s *functionScan) assignments(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		return false
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			right := n.Rhs[0]
			if len(n.Rhs) == len(n.Lhs) {
				right = n.Rhs[i]
			}
			if id, ok := left.(*ast.Ident); ok {
				s.assign(id, right)
			}
		}
	case *ast.RangeStmt:
		if id, ok := n.Value.(*ast.Ident); ok {
			s.assign(id, n.X)
		}
	}
	return true
}

func (s *functionScan) assign(id *ast.Ident, right ast.Expr) {
	object := s.info.Defs[id]
	if object == nil {
		object = s.info.Uses[id]
	}
	if object != nil && carriesError(object.Type()) {
		s.variables[object] = s.variables[object].with(s.of(right))
	}
}

func (s *functionScan) returns(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		return false
	case *ast.ReturnStmt:
		found := s.variables[s.result]
		if len(n.Results) > 0 {
			found = s.of(n.Results[len(n.Results)-1])
		}
		if found.begins && !s.origin.IsValid() {
			s.origin = n.Pos()
		}
		s.returned = s.returned.with(found)
	}
	return true
}

// values adds functions that the function may have called through values: those in variables of packages
// that it uses, and the Run methods that package agent adds as parts, whose errors end the kubelet.
func (s *functionScan) values(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Ident:
		if v, ok := s.info.Uses[n].(*types.Var); ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
			s.returned.functions = append(s.returned.functions, v.Pkg().Path()+"."+v.Name())
		}
	case *ast.CallExpr:
		if f := s.callee(n); f != nil && strings.HasPrefix(f.FullName(), "(*"+module+"/internal/agent.base).add") {
			s.passed(n.Args[len(n.Args)-1])
		}
	}
	return true
}

func (s *functionScan) passed(arg ast.Expr) {
	if value, ok := arg.(*ast.SelectorExpr); ok {
		if f, ok := s.info.Uses[value.Sel].(*types.Func); ok && isOwn(f) {
			s.returned.functions = append(s.returned.functions, f.FullName())
		}
	}
}

// of returns the sources of the error that an expression has, or that is the last value of a call.
func (s *functionScan) of(e ast.Expr) sources {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return s.variables[s.info.Uses[e]]
	case *ast.UnaryExpr, *ast.CompositeLit: // an error type of its own
		return sources{begins: true}
	case *ast.SelectorExpr: // an error in a struct, or a variable of a package
		return sources{begins: true}
	case *ast.CallExpr:
		return s.ofCall(e)
	}
	return sources{}
}

// ofCall returns the sources of a call's error: the function, and the errors among its arguments, which it
// may wrap.
func (s *functionScan) ofCall(call *ast.CallExpr) sources {
	var wrapped sources
	wraps := false
	for _, arg := range call.Args {
		if carriesError(s.info.Types[arg].Type) {
			wraps = true
			wrapped = wrapped.with(s.of(arg))
		}
	}
	function := s.callee(call)
	switch {
	case isOwn(function) && !s.makers[function.FullName()]:
		return wrapped.with(sources{functions: []string{function.FullName()}})
	case wraps: // fmt.Errorf, errors.Join, append
		return wrapped
	}
	return sources{begins: true}
}

// callee returns the function that a call names, nil if it calls a value.
func (s *functionScan) callee(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	if index, ok := fun.(*ast.IndexExpr); ok { // with a type argument
		fun = index.X
	}
	var id *ast.Ident
	switch fun := fun.(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return nil
	}
	function, _ := s.info.Uses[id].(*types.Func)
	if function != nil {
		function = function.Origin()
	}
	return function
}

// isOwn reports whether a function is one of the module, and no method of an interface.
func isOwn(function *types.Func) bool {
	if function == nil || function.Pkg() == nil || !strings.HasPrefix(function.Pkg().Path(), module+"/") {
		return false
	}
	receiver := function.Signature().Recv()
	return receiver == nil || !types.IsInterface(receiver.Type())
}

func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// carriesError reports whether a type is error or []error.
func carriesError(t types.Type) bool {
	if slice, ok := t.(*types.Slice); ok {
		return isError(slice.Elem())
	}
	return isError(t)
}
