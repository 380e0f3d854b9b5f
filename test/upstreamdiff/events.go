package main

import (
	"go/ast"
	"regexp"
	"strings"
)

var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+\*?$`)

// events returns the reasons of events: the value that follows an event type in a call or a list.
func events(packages []*goPackage) items {
	found := items{}
	add := func(reasons []string) {
		for _, reason := range reasons {
			if reasonPattern.MatchString(reason) {
				found[reason] = ""
			}
		}
	}
	after := func(at place, list []ast.Expr) {
		for i, e := range list[:max(0, len(list)-1)] {
			if selector, ok := e.(*ast.SelectorExpr); ok && strings.HasPrefix(selector.Sel.Name, "EventType") {
				add(at.strings(list[i+1]))
			}
		}
	}
	for _, p := range packages {
		for at := range all[*ast.CallExpr](p) {
			after(at, at.node.(*ast.CallExpr).Args)
		}
		for at := range all[*ast.CompositeLit](p) {
			literal := at.node.(*ast.CompositeLit)
			after(at, literal.Elts)
			for _, one := range withReasons(literal) {
				if reason := fieldOf(one, "Reason"); reason != nil {
					add(at.strings(reason))
				} else if len(one.Elts) > 0 {
					add(at.strings(one.Elts[0]))
				}
			}
		}
	}
	return found
}

// withReasons returns the literal, or its elements, if it is of a type whose field Reason becomes the
// reason of an event.
func withReasons(literal *ast.CompositeLit) (found []*ast.CompositeLit) {
	if list, ok := literal.Type.(*ast.ArrayType); ok && reasonTypes[lastName(list.Elt)] {
		for _, element := range literal.Elts {
			if one, ok := element.(*ast.CompositeLit); ok {
				found = append(found, one)
			}
		}
		return found
	}
	if literal.Type != nil && reasonTypes[lastName(literal.Type)] {
		return []*ast.CompositeLit{literal}
	}
	return nil
}

// reasonTypes: results of admission in the reference and here, warnings of DNS here.
var reasonTypes = map[string]bool{"PodAdmitResult": true, "Rejection": true, "Warning": true}
