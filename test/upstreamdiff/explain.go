package main

import (
	_ "embed"
	"fmt"
	"path"
	"strings"
)

//go:embed explained.tsv
var explainedTable string

// explanation says why a difference is intended, or that it is open.
type explanation struct {
	kind, name, reason string // name is a pattern of path.Match
	used               bool
}

func parseExplanations(table string) (found []*explanation, err error) {
	for line := range strings.Lines(table) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 3 || cells[2] == "" {
			return nil, fmt.Errorf("explained.tsv: %q does not have kind, name and reason", line)
		}
		found = append(found, &explanation{kind: cells[0], name: cells[1], reason: cells[2]})
	}
	return found, nil
}

// explain sets the reasons of differences and returns the entries that explain none.
func explain(all []difference, entries []*explanation) (stale []*explanation) {
	for i := range all {
		for _, e := range entries {
			if match, _ := path.Match(e.name, all[i].Name); match && e.kind == all[i].Kind && all[i].Reason == "" {
				all[i].Reason, e.used = e.reason, true
			}
		}
	}
	for _, e := range entries {
		if !e.used {
			stale = append(stale, e)
		}
	}
	return stale
}
