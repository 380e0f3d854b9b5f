package scale

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"swiftlet/bench"
)

// Markdown returns the table of all runs.
func (r *Result) Markdown() string {
	head := []string{""}
	for _, run := range r.Runs {
		head = append(head, run.title())
	}
	lines := [][]string{head}
	for _, row := range rows {
		line, measured := []string{row.Title}, false
		for _, run := range r.Runs {
			text := "–"
			if value, ok := row.value(run); ok {
				text, measured = strings.TrimSpace(bench.Number(value)+" "+row.Unit), true
			}
			line = append(line, text)
		}
		if measured {
			lines = append(lines, line)
		}
	}
	return table(lines)
}

// title names a run.
func (r *Run) title() string {
	name := map[string]string{Together: "Swiftlet, one process", Separate: "Swiftlet", Kubemark: "kubemark"}[r.Kind]
	return fmt.Sprintf("%s: %d × %d pods", name, r.Nodes, r.PodsPerNode)
}

// RequestTable returns the requests of one phase by kind, the most frequent first.
func (r *Result) RequestTable(phase string) string {
	kinds := map[string]float64{}
	head := []string{""}
	var runs []*Run
	for _, run := range r.Runs {
		if run.Requests[phase] == nil {
			continue
		}
		runs = append(runs, run)
		head = append(head, run.title())
		for kind, n := range run.Requests[phase] {
			kinds[kind] = max(kinds[kind], n)
		}
	}
	if len(runs) == 0 {
		return ""
	}
	lines := [][]string{head}
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(kinds[b], kinds[a]), cmp.Compare(a, b))
	}) {
		if kinds[kind] < 0.01 {
			continue
		}
		line := []string{kind}
		for _, run := range runs {
			line = append(line, bench.Number(run.Requests[phase][kind]))
		}
		lines = append(lines, line)
	}
	return table(lines)
}

// table writes lines as Markdown; the first one is the head.
func table(lines [][]string) string {
	var b strings.Builder
	for i, line := range lines {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(line)) + "|\n")
		}
	}
	return b.String()
}

// Goals lists the goals and whether they were reached.
func (r *Result) Goals() string {
	text := ""
	for _, o := range r.Outcomes {
		word := "reached"
		if !o.Reached {
			word = "not reached"
		}
		text += fmt.Sprintf("- %s: %s\n", o.Text, word)
	}
	return text
}

// Caption says where a result was measured.
func (r *Result) Caption() string {
	return fmt.Sprintf("Measured on %s, commit %s, in %.0f minutes: %s, %d cores, %.0f GB, Linux %s; etcd, API server and all nodes on this machine.",
		r.Date.Format("2006-01-02"), r.Commit, r.Minutes, r.Machine.CPU, r.Machine.Cores, r.Machine.Memory, r.Machine.Kernel)
}

// The generated part of docs/performance.md is between these lines.
const (
	beginMark = "<!-- scale: begin. make scale writes this part. -->"
	endMark   = "<!-- scale: end -->"
)

// phases are those whose requests the document shows.
var phases = []struct{ id, title string }{
	{"pod", "Requests per pod, from its creation until it is Ready"},
	{"idle", "Requests per node in an idle minute"},
	{"configmap", "Requests per node after the ConfigMap has changed"},
	{"restart", "Requests per node after all agents have restarted"},
	{"outage", "Requests per node after the API server is back"},
}

// Publish replaces the generated part of docs/performance.md.
func (r *Result) Publish(root string) error {
	text := r.Caption() + "\n\n" + r.Markdown()
	if goals := r.Goals(); goals != "" {
		text += "\n" + goals
	}
	for _, p := range phases {
		if t := r.RequestTable(p.id); t != "" {
			text += fmt.Sprintf("\n%s:\n\n%s", p.title, t)
		}
	}
	return bench.ReplacePart(filepath.Join(root, "docs", "performance.md"), beginMark, endMark, text)
}
