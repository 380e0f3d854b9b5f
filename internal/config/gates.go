package config

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed feature-gates.tsv
var gateTable string

// gate is one row of feature-gates.tsv.
type gate struct {
	stage        string // ALPHA, BETA, GA or DEPRECATED
	on           bool
	locked       bool     // may be set to its default only
	dependencies []string // gates that must be on if this one is
}

// stageGates set all gates of their stage that are not set themselves.
var stageGates = map[string]string{"AllAlpha": "ALPHA", "AllBeta": "BETA"}

// knownGates returns all gates of Kubernetes v1.37, also those of other components, so that one list
// of gates can be used for a whole cluster.
var knownGates = sync.OnceValue(func() map[string]gate {
	known := map[string]gate{}
	for line := range strings.Lines(gateTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := append(strings.Split(strings.TrimRight(line, "\n"), "\t"), "", "")
		g := gate{stage: cells[1], on: cells[2] == "1", locked: cells[3] == "locked"}
		if cells[4] != "" {
			g.dependencies = strings.Split(cells[4], ",")
		}
		known[cells[0]] = g
	}
	return known
})

// gates holds the resolved state of every known gate.
type gates map[string]bool

// resolveGates applies the requested gates to the defaults. A gate that is unknown or locked to
// another value is a problem. A gate that will be removed gets a notice.
func resolveGates(requested map[string]bool) (g gates, problems []problem, notices []string) {
	known := knownGates()
	g = gates{}
	for name, spec := range known {
		g[name] = spec.on
	}
	for name, stage := range stageGates {
		value, ok := requested[name]
		if !ok {
			continue
		}
		for other, spec := range known {
			if spec.stage == stage && stageGates[other] == "" {
				g[other] = value
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		value := requested[name]
		spec, ok := known[name]
		switch {
		case !ok:
			problems = append(problems, problem{field: "featureGates." + name, message: "is not a feature gate" + DidYouMean(name, maps.Keys(known))})
			continue
		case spec.locked && value != spec.on:
			problems = append(problems, problem{field: "featureGates." + name, message: fmt.Sprintf("is locked to %t", spec.on)})
			continue
		case spec.stage == "DEPRECATED", spec.stage == "GA":
			notices = append(notices, fmt.Sprintf("feature gate %s=%t: the gate is %s and will be removed in a future release", name, value, spec.stage))
		}
		g[name] = value
	}
	problems = append(problems, g.unmetDependencies(requested)...)
	return g, problems, notices
}

// unmetDependencies finds gates that are on while a dependency is off. It reports the problem for
// the gate that was requested, which may be the dependency.
func (g gates) unmetDependencies(requested map[string]bool) (problems []problem) {
	known := knownGates()
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if !g[name] {
			continue
		}
		for _, dependency := range known[name].dependencies {
			field := "featureGates"
			if _, ok := requested[name]; ok {
				field += "." + name
			} else if _, ok := requested[dependency]; ok {
				field += "." + dependency
			}
			if !g[dependency] {
				problems = append(problems, problem{field: field, message: fmt.Sprintf("%s is on, but needs %s, which is off", name, dependency)})
			}
		}
	}
	return problems
}
