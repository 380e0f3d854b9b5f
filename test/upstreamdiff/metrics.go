package main

import (
	"go/ast"
	"regexp"
	"strings"
)

// metricOptions are the structs that name a metric and its type.
var metricOptions = regexp.MustCompile(`^(Counter|Gauge|Histogram|TimingHistogram|Summary)Opts$`)

// metrics returns the metrics that packages declare, with their types where the declaration has one.
func metrics(packages []*goPackage) items {
	found := items{}
	add := func(names []string, kind string) {
		for _, name := range names {
			if found[name] == "" && metricPattern.MatchString(name) {
				found[name] = kind
			}
		}
	}
	for _, p := range packages {
		for at := range all[*ast.CompositeLit](p) {
			literal := at.node.(*ast.CompositeLit)
			if literal.Type == nil { // cAdvisor's tables
				if names := at.keyed(literal, "name"); len(names) > 0 && len(at.keyed(literal, "help")) > 0 {
					add(names, valueKind(literal))
				}
				continue
			}
			kind := metricOptions.FindStringSubmatch(lastName(literal.Type))
			if kind == nil {
				continue
			}
			for _, namespace := range orEmpty(at.keyed(literal, "Namespace")) {
				for _, subsystem := range orEmpty(at.keyed(literal, "Subsystem")) {
					for _, name := range at.keyed(literal, "Name") {
						add([]string{metricName(namespace, subsystem, name)}, strings.ToLower(strings.TrimPrefix(kind[1], "Timing")))
					}
				}
			}
		}
		for _, call := range p.calls["NewDesc"] {
			add(call.strings(call.node.(*ast.CallExpr).Args[0]), "")
		}
	}
	return found
}

var metricPattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func metricName(parts ...string) string {
	var filled []string
	for _, p := range parts {
		if p != "" {
			filled = append(filled, p)
		}
	}
	return strings.Join(filled, "_")
}

func orEmpty(values []string) []string {
	if len(values) == 0 {
		return []string{""}
	}
	return values
}

// keyed returns the strings of a field of a struct literal.
func (p place) keyed(literal *ast.CompositeLit, key string) []string {
	if e := fieldOf(literal, key); e != nil {
		return p.strings(e)
	}
	return nil
}

func fieldOf(literal *ast.CompositeLit, key string) ast.Expr {
	for _, element := range literal.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			if name, ok := kv.Key.(*ast.Ident); ok && name.Name == key {
				return kv.Value
			}
		}
	}
	return nil
}

// valueKind reads prometheus.GaugeValue and the like.
func valueKind(literal *ast.CompositeLit) string {
	if e := fieldOf(literal, "valueType"); e != nil {
		return strings.ToLower(strings.TrimSuffix(lastName(e), "Value"))
	}
	return ""
}
