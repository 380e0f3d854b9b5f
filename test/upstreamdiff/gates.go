package main

import (
	"cmp"
	"go/ast"
	"go/constant"
	"slices"
	"strconv"
	"strings"
)

// gates returns the feature gates that the kubelet knows, each with its stage, default, lock and
// dependencies in this version.
func (u *upstream) gates() items {
	found := items{"AllAlpha": "ALPHA off", "AllBeta": "BETA off"}
	needs := u.gateDependencies()
	for _, p := range u.packages {
		for at := range all[*ast.CompositeLit](p) {
			list := at.node.(*ast.CompositeLit)
			kind, ok := list.Type.(*ast.MapType)
			if !ok || lastName(kind.Key) != "Feature" || lastName(kind.Value) != "VersionedSpecs" || !strings.Contains(p.path, "features") && !strings.Contains(p.path, "logs") {
				continue
			}
			for _, element := range list.Elts {
				entry := element.(*ast.KeyValueExpr)
				for _, name := range at.strings(entry.Key) {
					if spec := u.effectiveSpec(at, entry.Value); spec != "" {
						found[name] = strings.TrimSpace(spec + " " + needs[name])
					}
				}
			}
		}
	}
	return found
}

// effectiveSpec describes the last of a gate's specifications that applies to this version.
func (u *upstream) effectiveSpec(at place, e ast.Expr) (spec string) {
	list, ok := e.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	for _, element := range list.Elts {
		one, ok := element.(*ast.CompositeLit)
		if !ok {
			continue
		}
		stage, on, locked, minor, compatible := "GA", "off", "", 0, 0
		for _, field := range one.Elts {
			kv := field.(*ast.KeyValueExpr)
			switch lastName(kv.Key) {
			case "Version":
				minor = minorVersion(at, kv.Value)
			case "MinCompatibilityVersion":
				compatible = minorVersion(at, kv.Value)
			case "Default":
				if v := at.value(kv.Value); v != nil && v.Kind() == constant.Bool && constant.BoolVal(v) {
					on = "on"
				}
			case "LockToDefault":
				if v := at.value(kv.Value); v != nil && v.Kind() == constant.Bool && constant.BoolVal(v) {
					locked = " locked"
				}
			case "PreRelease":
				stage = cmp.Or(map[string]string{"Alpha": "ALPHA", "Beta": "BETA", "Deprecated": "DEPRECATED"}[lastName(kv.Value)], "GA")
			}
		}
		// A component is compatible with the minor version before its own.
		if minor <= u.minor() && compatible < u.minor() {
			spec = stage + " " + on + locked
		}
	}
	return spec
}

// minorVersion reads version.MustParse("1.37") or version.MajorMinor(1, 37).
func minorVersion(at place, e ast.Expr) int {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return 0
	}
	switch v := at.value(call.Args[len(call.Args)-1]); {
	case v == nil:
		return 0
	case v.Kind() == constant.Int:
		n, _ := constant.Int64Val(v)
		return int(n)
	case v.Kind() == constant.String:
		_, minor, _ := strings.Cut(constant.StringVal(v), ".")
		n, _ := strconv.Atoi(minor)
		return n
	}
	return 0
}

func (u *upstream) minor() int {
	n, _ := strconv.Atoi(strings.Split(u.version, ".")[1])
	return n
}

// gateDependencies maps a gate to "needs A,B".
func (u *upstream) gateDependencies() map[string]string {
	needs := map[string]string{}
	for _, p := range u.packages {
		for at := range all[*ast.CompositeLit](p) {
			list := at.node.(*ast.CompositeLit)
			kind, ok := list.Type.(*ast.MapType)
			if !ok || lastName(kind.Key) != "Feature" {
				continue
			}
			if of, ok := kind.Value.(*ast.ArrayType); !ok || lastName(of.Elt) != "Feature" {
				continue
			}
			for _, element := range list.Elts {
				entry := element.(*ast.KeyValueExpr)
				var others []string
				for _, other := range entry.Value.(*ast.CompositeLit).Elts {
					others = append(others, at.strings(other)...)
				}
				slices.Sort(others)
				for _, name := range at.strings(entry.Key) {
					if len(others) > 0 {
						needs[name] = "needs " + strings.Join(others, ",")
					}
				}
			}
		}
	}
	return needs
}
