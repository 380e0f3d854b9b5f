package scale

import (
	"fmt"

	"swiftlet/bench"
)

// goal is what a run of ours is to reach. With of, the limit is a multiple of another run's value.
type goal struct {
	row   string
	kind  string
	nodes int
	most  float64
	of    string
}

// maxLate is how late a lease may be renewed, in seconds.
const maxLate = 10

var goals = []goal{
	{row: "lease_max", kind: Together, nodes: 1000, most: maxLate},
	{row: "pod_requests", kind: Separate, nodes: 100, most: 1. / 2, of: Kubemark},
	{row: "pod_bytes", kind: Separate, nodes: 100, most: 1. / 2, of: Kubemark},
	{row: "idle_requests", kind: Separate, nodes: 100, most: 1. / 2, of: Kubemark},
	{row: "idle_bytes", kind: Separate, nodes: 100, most: 1. / 2, of: Kubemark},
	{row: "node_pss", kind: Separate, nodes: 100, most: 1. / 3, of: Kubemark},
	{row: "node_anonymous", kind: Separate, nodes: 100, most: 1. / 3, of: Kubemark},
}

// Outcome is a goal and whether it was reached.
type Outcome struct {
	Text    string `json:"text"`
	Reached bool   `json:"reached"`
}

// outcomes evaluates the goals of which everything was measured.
func outcomes(runs []*Run) []Outcome {
	var all []Outcome
	for _, g := range goals {
		run := find(runs, g.kind, g.nodes)
		if run == nil {
			continue
		}
		row := rowByID(g.row)
		value, ok := row.value(run)
		limit, against := g.most, fmt.Sprintf("≤ %s %s", bench.Number(g.most), row.Unit)
		if g.of != "" {
			other := find(runs, g.of, g.nodes)
			if other == nil {
				continue
			}
			of, measured := row.value(other)
			limit, ok = limit*of, ok && measured
			against = fmt.Sprintf("≤ %s × %s (%s)", bench.Number(g.most), g.of, bench.Number(of))
		}
		if ok {
			all = append(all, Outcome{
				Text:    fmt.Sprintf("%s, %d nodes: %s %s %s", row.Title, g.nodes, bench.Number(value), row.Unit, against),
				Reached: value <= limit,
			})
		}
	}
	return all
}

func find(runs []*Run, kind string, nodes int) *Run {
	for _, r := range runs {
		if r.Kind == kind && r.Nodes == nodes {
			return r
		}
	}
	return nil
}

func rowByID(id string) Row {
	for _, r := range rows {
		if r.ID == id {
			return r
		}
	}
	return Row{ID: id, Title: id}
}
