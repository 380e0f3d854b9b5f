package main

import (
	"go/ast"
	"go/constant"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// flags returns the flags of the kubelet with type, default and "deprecated".
func (u *upstream) flags() (items, error) {
	defaults, err := u.flagDefaults()
	if err != nil {
		return nil, err
	}
	r := flagReader{u: u, defaults: defaults, found: items{}, notDeprecated: map[string]bool{}}
	logs, err := u.load("k8s.io/component-base/logs/api/v1")
	if err != nil {
		return nil, err
	}
	r.fieldTypes = map[string]string{}
	for _, f := range fieldsOf(logs, "LoggingConfiguration") {
		r.fieldTypes[f.name] = r.typeMethod(f.at, f.at.node.(ast.Expr))
	}
	const base = "k8s.io/component-base/"
	for _, path := range []string{kubernetes + "/cmd/kubelet/app", kubernetes + "/cmd/kubelet/app/options", base + "logs/api/v1", base + "logs", base + "version/verflag"} {
		p, err := u.load(path)
		if err != nil {
			return nil, err
		}
		r.read(p)
	}
	return r.found, nil
}

// flagDefaults returns the defaults of the configuration file, overridden by those of the command line.
func (u *upstream) flagDefaults() (defaultValues, error) {
	defaults, err := u.defaults()
	if err != nil {
		return nil, err
	}
	p, err := u.load(kubernetes + "/cmd/kubelet/app/options")
	if err != nil {
		return nil, err
	}
	legacy := p.funcs["applyLegacyDefaults"]
	over := defaultValues{}
	over.collect(legacy, "", nil)
	for at := range all[*ast.CompositeLit](p) {
		if literal := at.node.(*ast.CompositeLit); literal.Type != nil && lastName(literal.Type) == "KubeletFlags" {
			for _, element := range literal.Elts {
				if kv, ok := element.(*ast.KeyValueExpr); ok {
					over[lastName(kv.Key)] = defaultValue{at, kv.Value}
				}
			}
		}
	}
	for path, value := range over {
		defaults[path] = value
	}
	return defaults, nil
}

// flagReader collects the calls that define flags.
type flagReader struct {
	u             *upstream
	defaults      defaultValues
	found         items
	notDeprecated map[string]bool
	fieldTypes    map[string]string // types of values by path of Go names, within the logging configuration
}

var (
	definesFlag = regexp.MustCompile(`^(String|Bool|Int|Int32|Int64|Duration|StringSlice|)Var(P?)$`)
	quotedType  = regexp.MustCompile("`(.*)`")
)

func (r *flagReader) read(p *goPackage) {
	deprecated := map[string]bool{}
	for at := range all[*ast.CallExpr](p) {
		call := at.node.(*ast.CallExpr)
		switch name := lastName(call.Fun); {
		case name == "MarkDeprecated":
			for _, flag := range at.strings(call.Args[0]) {
				deprecated[flag] = true
			}
		case name == "BoolP" && strings.HasSuffix(p.path, "/app"):
			r.found[r.name(at, call.Args[0])] = "bool"
		case name == "register" && len(call.Args) == 3:
			r.global(at, call)
		case definesFlag.MatchString(name) && len(call.Args) >= 3:
			r.define(at, call)
		}
	}
	delete(r.found, "")
	for flag := range deprecated {
		r.found[flag] += " deprecated"
	}
}

// name returns the flag's name, or "" within a function that passes a name on.
func (r *flagReader) name(at place, e ast.Expr) string {
	if names := at.strings(e); len(names) == 1 {
		return strings.ReplaceAll(names[0], "_", "-")
	}
	return ""
}

// define adds the flag of fs.StringVar(&variable, "name", default, "usage") and the like.
func (r *flagReader) define(at place, call *ast.CallExpr) {
	name := r.name(at, call.Args[1])
	usage := strings.Join(at.strings(call.Args[len(call.Args)-1]), "")
	parts := definesFlag.FindStringSubmatch(lastName(call.Fun))
	kind := map[string]string{"String": "string", "Bool": "bool", "Int": "int", "Int32": "int32", "Int64": "int", "Duration": "duration", "StringSlice": "strings"}[parts[1]]
	value := call.Args[0]
	if parts[1] == "" {
		kind = r.valueType(at, call.Args[0])
	} else {
		value = call.Args[len(call.Args)-2]
	}
	if quoted := quotedType.FindStringSubmatch(usage); quoted != nil {
		kind = quoted[1]
	}
	text := r.defaultText(at, value, parts[1])
	if kind == "string" && text != "" {
		text = strconv.Quote(text)
	}
	detail := strings.TrimSpace(kind + " " + text)
	if r.isDeprecated(at, name) {
		detail += " deprecated"
	}
	if kind != "" { // else it is a function that passes a value on
		r.found[name] = detail
	}
}

// isDeprecated: all flags of configuration fields are deprecated, except those in a list.
func (r *flagReader) isDeprecated(at place, name string) bool {
	if strings.HasSuffix(at.pkg.path, "/logs/api/v1") {
		return !r.notDeprecated[name]
	}
	function, ok := at.outer[0].(*ast.FuncDecl)
	if !ok || function.Name.Name != "AddKubeletConfigFlags" {
		return false
	}
	if len(r.notDeprecated) == 0 {
		at.at(function).walk(func(p place) bool {
			assign, ok := p.node.(*ast.AssignStmt)
			if ok && lastName(assign.Lhs[0]) == "notDeprecated" {
				for _, key := range p.elements(assign.Rhs[0], true, depth) {
					r.notDeprecated[constant.StringVal(key)] = true
				}
			}
			return true
		})
	}
	return !r.notDeprecated[name]
}

// defaultText evaluates the default of a flag, which is a constant or a field with a default.
func (r *flagReader) defaultText(at place, e ast.Expr, kind string) string {
	if v := at.value(e); v != nil {
		return constantText(v, kind)
	}
	path := ""
	ast.Inspect(e, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && path == "" {
			if x, ok := selector.X.(*ast.Ident); !ok || at.imported(x.Name) == nil {
				path = fieldPath(selector)
				return false
			}
		}
		return path == ""
	})
	for strings.HasSuffix(path, ".Duration") {
		path = strings.TrimSuffix(path, ".Duration")
	}
	if strings.HasSuffix(at.pkg.path, "/logs/api/v1") {
		path = join("Logging", path)
	}
	if strings.HasSuffix(path, "FlushFrequency") {
		kind = "Duration"
	}
	if kind == "StringSlice" {
		if text := r.defaults.text(path, kind); text != "" {
			return "[" + text + "]"
		}
		return ""
	}
	return r.defaults.text(path, kind)
}

// valueType returns what the method Type of a flag's value returns.
func (r *flagReader) valueType(at place, e ast.Expr) string {
	p, name := at.pkg, ""
	switch x := e.(type) {
	case *ast.UnaryExpr:
		return r.valueType(at, x.X)
	case *ast.CompositeLit:
		return r.typeMethod(at, x.Type)
	case *ast.CallExpr:
		if selector, ok := x.Fun.(*ast.SelectorExpr); ok {
			if other := at.imported(lastName(selector.X)); other != nil {
				p = other
			}
		}
		name = lastName(x.Fun)
		if declared, ok := p.funcs[name]; ok {
			return r.resultType(declared)
		}
		return r.typeMethod(at, x.Fun) // a conversion
	case *ast.SelectorExpr: // a field
		return r.fieldTypes[fieldPath(x)]
	case *ast.Ident:
		kind := ""
		at.at(at.outer[0]).walk(func(p place) bool {
			if assign, ok := p.node.(*ast.AssignStmt); ok && len(assign.Lhs) == 1 && lastName(assign.Lhs[0]) == x.Name {
				kind = r.valueType(p, assign.Rhs[0])
			}
			return kind == ""
		})
		for _, function := range at.outer {
			for _, f := range functionType(function).Params.List {
				for _, name := range f.Names {
					if name.Name == x.Name && kind == "" {
						kind = r.typeMethod(at, f.Type)
					}
				}
			}
		}
		if declared, ok := p.values[x.Name]; ok && kind == "" {
			kind = r.valueType(declared, declared.node.(ast.Expr))
		}
		return kind
	}
	return ""
}

// resultType returns the type of a function's result, or of the value that it returns as an interface.
func (r *flagReader) resultType(function place) (kind string) {
	declared := function.node.(*ast.FuncDecl)
	if declared.Type.Results != nil {
		kind = r.typeMethod(function, declared.Type.Results.List[0].Type)
	}
	function.walk(func(at place) bool {
		if answer, ok := at.node.(*ast.ReturnStmt); ok && kind == "" {
			kind = r.valueType(at, answer.Results[0])
		}
		return true
	})
	return kind
}

func (r *flagReader) typeMethod(at place, e ast.Expr) string {
	p := at.pkg
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if selector, ok := e.(*ast.SelectorExpr); ok {
		if other := at.imported(lastName(selector.X)); other != nil {
			p = other
		}
	}
	method, ok := p.funcs[lastName(e)+".Type"]
	if !ok {
		return ""
	}
	kind := ""
	method.walk(func(at place) bool {
		if answer, ok := at.node.(*ast.ReturnStmt); ok {
			kind = strings.Join(at.strings(answer.Results[0]), "")
		}
		return true
	})
	return kind
}

// global adds a flag of cAdvisor that is taken over from the standard flag set.
func (r *flagReader) global(at place, call *ast.CallExpr) {
	for _, name := range at.strings(call.Args[2]) {
		for _, p := range r.u.below("github.com/google/cadvisor") {
			for _, definition := range p.calls["Duration"] {
				args := definition.node.(*ast.CallExpr).Args
				if len(args) == 3 && strings.Join(definition.strings(args[0]), "") == name {
					r.found[strings.ReplaceAll(name, "_", "-")] = "duration " + constantText(definition.value(args[1]), "Duration")
				}
			}
		}
		r.override(name)
	}
}

// override applies the default that package cadvisor of the kubelet sets.
func (r *flagReader) override(name string) {
	for _, p := range r.u.below(kubernetes + "/pkg/kubelet/cadvisor") {
		for at := range all[*ast.KeyValueExpr](p) {
			entry := at.node.(*ast.KeyValueExpr)
			call, ok := entry.Value.(*ast.CallExpr)
			if ok && lastName(call.Fun) == "String" && slices.Contains(at.strings(entry.Key), name) {
				if v := at.value(call.Fun.(*ast.SelectorExpr).X); v != nil {
					r.found[strings.ReplaceAll(name, "_", "-")] = "duration " + constantText(v, "Duration")
				}
			}
		}
	}
}
