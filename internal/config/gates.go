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
	stage  string // ALPHA, BETA, GA or DEPRECATED
	on     bool
	locked bool     // may be named, but only with its default
	needs  []string // gates that must be on when this one is
}

// The two gates that set every other gate of their stage, unless that one is named too.
var stageGates = map[string]string{"AllAlpha": "ALPHA", "AllBeta": "BETA"}

// knownGates is the table of Kubernetes v1.37: the names are shared by all components, so
// that one list of gates can be given to a whole cluster.
var knownGates = sync.OnceValue(func() map[string]gate {
	known := map[string]gate{}
	for line := range strings.Lines(gateTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := append(strings.Split(strings.TrimRight(line, "\n"), "\t"), "", "")
		g := gate{stage: cells[1], on: cells[2] == "1", locked: cells[3] == "locked"}
		if cells[4] != "" {
			g.needs = strings.Split(cells[4], ",")
		}
		known[cells[0]] = g
	}
	return known
})

// gates holds the resolved state of every known gate.
type gates map[string]bool

// resolveGates applies what was asked for to the defaults. Asking for an unknown gate or
// against a lock is a problem of that gate; asking for a settled one is worth a notice.
func resolveGates(asked map[string]bool) (g gates, problems []problem, notices []string) {
	known := knownGates()
	g = gates{}
	for name, spec := range known {
		g[name] = spec.on
	}
	for name, stage := range stageGates {
		value, ok := asked[name]
		if !ok {
			continue
		}
		for other, spec := range known {
			if spec.stage == stage && stageGates[other] == "" {
				g[other] = value
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		value := asked[name]
		spec, ok := known[name]
		switch {
		case !ok:
			problems = append(problems, problem{"featureGates." + name, "is not a feature gate" + didYouMean(name, maps.Keys(known))})
			continue
		case spec.locked && value != spec.on:
			problems = append(problems, problem{"featureGates." + name, fmt.Sprintf("is locked to %t", spec.on)})
			continue
		case spec.stage == "DEPRECATED", spec.stage == "GA":
			notices = append(notices, fmt.Sprintf("feature gate %s=%t: the gate is %s and will be removed in a future release", name, value, spec.stage))
		}
		g[name] = value
	}
	problems = append(problems, g.unmetNeeds(asked)...)
	return g, problems, notices
}

// unmetNeeds finds gates that are on without what they stand on. The problem is one of the
// gate that was asked for, where it was; a default that lost its ground has no such place.
func (g gates) unmetNeeds(asked map[string]bool) (problems []problem) {
	known := knownGates()
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if !g[name] {
			continue
		}
		for _, need := range known[name].needs {
			field := "featureGates"
			if _, ok := asked[name]; ok {
				field += "." + name
			} else if _, ok := asked[need]; ok {
				field += "." + need
			}
			if !g[need] {
				problems = append(problems, problem{field, fmt.Sprintf("%s is on, but needs %s, which is off", name, need)})
			}
		}
	}
	return problems
}
