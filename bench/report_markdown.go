package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// titles are the subjects as tables name them.
var titles = []struct{ subject, title string }{{Bare, "bare CRI calls"}, {Reference, "reference"}, {Ours, "Swiftlet"}}

// Markdown returns the table of all rows, or of those that README shows.
func (r *Result) Markdown(frontOnly bool) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, t := range titles {
		title := t.title
		if t.subject == Reference {
			title = "kubelet " + r.Versions["reference"]
		}
		fmt.Fprintf(&b, " %s |", title)
	}
	b.WriteString(" Swiftlet ÷ kubelet | goal |\n|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		if !frontOnly || row.front {
			b.WriteString(row.markdown())
		}
	}
	return b.String()
}

func (r RowResult) markdown() string {
	cells := []string{r.Title}
	for _, t := range titles {
		cells = append(cells, r.cell(t.subject))
	}
	ratio := "–"
	if value, ok := r.ratio(Ours, Reference); ok {
		ratio = Number(value)
	}
	goal := r.Goal
	if r.Outcome != "" {
		goal += ": " + r.Outcome
	}
	if value, ok := r.ratio(Ours, Bare); ok && r.Goal != "" {
		goal += fmt.Sprintf(" (%s × bare)", Number(value))
	}
	return "| " + strings.Join(append(cells, ratio, goal), " | ") + " |\n"
}

// cell is a median with its spread, such as "0.22 s (0.20–0.25)".
func (r RowResult) cell(subject string) string {
	s, ok := r.Subjects[subject]
	if !ok {
		return "–"
	}
	text := format(s.Median, r.Unit)
	if len(s.Samples) > 1 && s.Min != s.Max {
		text += fmt.Sprintf(" (%s–%s)", Number(s.Min), Number(s.Max))
	}
	return text
}

// format writes a value with its unit.
func format(value float64, unit string) string { return Number(value) + " " + unit }

// Number writes a value with three digits that count.
func Number(value float64) string {
	if value == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	return strconv.FormatFloat(value, 'f', min(max(digits, 0), 5), 64)
}

// Caption says on which machine and with which programs a result was measured.
func (r *Result) Caption() string {
	kind := ""
	if r.Quick {
		kind = ", quick run"
	}
	if r.Smoke {
		kind = ", smoke run with few pods: the figures mean nothing"
	}
	return fmt.Sprintf("Median (lowest–highest) of %d rounds on %s, commit %s%s: %s, %d cores, %.0f GB, Linux %s, containerd %s, API server %s on the same machine.",
		r.Rounds, r.Date.Format("2006-01-02"), r.Commit, kind, r.Machine.CPU, r.Machine.Cores, r.Machine.Memory, r.Machine.Kernel,
		r.Versions["containerd"], r.Versions["apiserver"])
}
