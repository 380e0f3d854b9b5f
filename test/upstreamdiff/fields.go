package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"reflect"
	"strconv"
	"strings"
	"time"
)

const configAPI = "k8s.io/kubelet/config/v1beta1"

// field is a field of a configuration struct.
type field struct {
	json string // path of JSON names
	name string // path of Go names
	kind string // last name of the type
	of   string // the struct type that has the field
	at   place  // the type
}

// configuration returns the fields of the configuration file with their defaults.
func (u *upstream) configuration() (items, error) {
	api, err := u.load(configAPI)
	if err != nil {
		return nil, err
	}
	defaults, err := u.defaults()
	if err != nil {
		return nil, err
	}
	found := items{}
	for _, f := range fieldsOf(api, "KubeletConfiguration") {
		found[f.json] = defaults.text(f.name, f.kind)
	}
	return found, nil
}

// fieldsOf returns the leaves of a struct type: fields that are no structs of the API.
func fieldsOf(p *goPackage, name string) []field { return structFields(p, name, "", "", 0) }

func structFields(p *goPackage, name, json, goPath string, level int) (found []field) {
	declared, ok := p.types[name]
	if !ok || level > 6 {
		return nil
	}
	body, ok := declared.node.(*ast.TypeSpec).Type.(*ast.StructType)
	if list, isList := declared.node.(*ast.TypeSpec).Type.(*ast.ArrayType); isList {
		return innerFields(declared, list, json, goPath, level)
	}
	if !ok {
		return nil
	}
	for _, f := range body.Fields.List {
		tag := ""
		if f.Tag != nil {
			text, _ := strconv.Unquote(f.Tag.Value)
			tag, _, _ = strings.Cut(reflect.StructTag(text).Get("json"), ",")
		}
		if tag == "-" || lastName(f.Type) == "TypeMeta" || lastName(f.Type) == "ObjectMeta" {
			continue
		}
		goName := lastName(f.Type)
		if len(f.Names) > 0 {
			goName = f.Names[0].Name
		}
		if len(f.Names) == 0 && tag == "" {
			goName = "" // its fields are promoted
		}
		inner := innerFields(declared, f.Type, join(json, tag), join(goPath, goName), level)
		if len(inner) == 0 && tag != "" {
			inner = []field{{join(json, tag), join(goPath, goName), lastName(f.Type), name, declared.at(f.Type)}}
		}
		found = append(found, inner...)
	}
	return found
}

// innerFields returns the fields of a type if it is a struct, a pointer to one or a list of them.
func innerFields(at place, e ast.Expr, json, goPath string, level int) []field {
	switch e := e.(type) {
	case *ast.StarExpr:
		return innerFields(at, e.X, json, goPath, level)
	case *ast.ArrayType:
		return innerFields(at, e.Elt, json+"[]", goPath, level)
	case *ast.Ident:
		return structFields(at.pkg, e.Name, json, goPath, level+1)
	case *ast.SelectorExpr:
		if opaque[e.Sel.Name] {
			return nil
		}
		if other := at.imported(lastName(e.X)); other != nil {
			return structFields(other, e.Sel.Name, json, goPath, level+1)
		}
	}
	return nil
}

// opaque are structs that are written as one value.
var opaque = map[string]bool{"Duration": true, "Time": true, "Quantity": true, "QuantityValue": true, "TimeOrMetaDuration": true}

func join(path, name string) string { return strings.Trim(path+"."+name, ".") }

// defaultValues has the defaults of fields by their path of Go names.
type defaultValues map[string]defaultValue

type defaultValue struct {
	at place
	e  ast.Expr
}

// defaults returns the defaults of the configuration file.
func (u *upstream) defaults() (defaultValues, error) {
	found := defaultValues{}
	gates := u.gates()
	for _, source := range []struct{ pkg, function, prefix string }{
		{kubernetes + "/pkg/kubelet/apis/config/v1beta1", "SetDefaults_KubeletConfiguration", ""},
		{"k8s.io/component-base/logs/api/v1", "SetRecommendedLoggingConfiguration", "Logging"},
	} {
		p, err := u.load(source.pkg)
		if err != nil {
			return nil, err
		}
		function, ok := p.funcs[source.function]
		if !ok {
			return nil, fmt.Errorf("find defaults: %s has no function %s", source.pkg, source.function)
		}
		function.outer = append(function.outer, function.node)
		found.collect(function.at(function.node.(*ast.FuncDecl).Body), source.prefix, gates)
	}
	return found, nil
}

// collect adds the assignments to fields. What needs a gate that is off is left out.
func (d defaultValues) collect(at place, prefix string, gates items) {
	ast.Inspect(at.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if gate := enabledGate(at, n.Cond); gate != "" {
				return strings.Contains(gates[gate], " on")
			}
		case *ast.AssignStmt:
			path := fieldPath(n.Lhs[0])
			for strings.HasSuffix(path, ".Duration") { // the number within a duration
				path = strings.TrimSuffix(path, ".Duration")
			}
			if path != "" && len(n.Lhs) == 1 {
				if _, ok := d[join(prefix, path)]; !ok {
					d[join(prefix, path)] = defaultValue{at, n.Rhs[0]}
				}
			}
		}
		return true
	})
}

// enabledGate returns the gate of x.Enabled(features.Gate), or "".
func enabledGate(at place, e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok || lastName(call.Fun) != "Enabled" || len(call.Args) != 1 {
		return ""
	}
	return strings.Join(at.strings(call.Args[0]), "")
}

// fieldPath returns B.C of the expression a.B.C, or "".
func fieldPath(e ast.Expr) string {
	var names []string
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			names = append([]string{x.Sel.Name}, names...)
			e = x.X
			continue
		case *ast.UnaryExpr:
			e = x.X
			continue
		case *ast.StarExpr:
			e = x.X
			continue
		case *ast.Ident:
			return strings.Join(names, ".")
		}
		return ""
	}
}

// text returns a default as it is written in the file, or "" if it is the zero value.
func (d defaultValues) text(path, kind string) string {
	def, ok := d[path]
	if !ok {
		return ""
	}
	if id, isIdent := def.e.(*ast.Ident); isIdent { // a list in a variable
		if declared, isVar := def.at.pkg.values[id.Name]; isVar {
			if list := declared.elements(declared.node.(ast.Expr), false, depth); len(list) > 0 {
				var words []string
				for _, v := range list {
					words = append(words, constantText(v, ""))
				}
				return strings.Join(words, ",")
			}
		}
	}
	if v := def.at.value(def.e); v != nil {
		return constantText(v, kind)
	}
	return ""
}

func constantText(v constant.Value, kind string) string {
	switch v.Kind() {
	case constant.String:
		return constant.StringVal(v)
	case constant.Float:
		number, _ := constant.Float64Val(v)
		return strconv.FormatFloat(number, 'g', -1, 64)
	case constant.Bool:
		if !constant.BoolVal(v) {
			return ""
		}
	}
	n, exact := constant.Int64Val(constant.ToInt(v))
	switch {
	case v.Kind() == constant.Int && exact && n == 0:
		return ""
	case exact && (kind == "Duration" || kind == "TimeOrMetaDuration"):
		return time.Duration(n).String()
	}
	return v.ExactString()
}
