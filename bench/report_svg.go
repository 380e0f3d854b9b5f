package bench

import (
	"fmt"
	"html"
	"strings"
)

// Chart is a picture of some rows.
type Chart struct {
	File  string
	Title string
	IDs   []string
}

// Charts are the pictures that the documents show.
var Charts = []Chart{
	{"bench-times.svg", "Time, lower is better", []string{"start_one", "start_60", "start_200", "delete_one", "delete_60", "crash", "configmap", "readiness", "restart_200"}},
	{"bench-cost.svg", "Cost of the agent, lower is better", []string{"start_60_machine_cpu", "start_60_agent_cpu", "idle_cpu_60", "idle_wakeups_60", "rss_60", "anon_200", "binary", "probes_exec_agent_each", "probes_http_agent_cpu"}},
}

// Sizes of a chart, in pixels.
const (
	chartWidth = 760
	labelWidth = 320
	barWidth   = 300
	barHeight  = 12
	rowGap     = 14
	chartTop   = 58
)

// style is readable on light and on dark pages.
const style = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}
.title{font-weight:600;font-size:15px}
.value{font-size:11px}
.bare{fill:#8c959f}.reference{fill:#bf8700}.ours{fill:#1a7f37}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.bare{fill:#6e7681}.reference{fill:#d29922}.ours{fill:#3fb950}}
</style>
`

// SVG draws one group of bars per row. Each group has a scale of its own: rows have different units.
func (r *Result) SVG(c Chart) string {
	var body strings.Builder
	y := chartTop
	for _, id := range c.IDs {
		for _, row := range r.Rows {
			if row.ID == id {
				y = row.bars(&body, y)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		chartWidth, y, chartWidth, y, html.EscapeString(c.Title))
	b.WriteString(style)
	fmt.Fprintf(&b, `<text class="title" x="10" y="22">%s</text>`+"\n", html.EscapeString(c.Title))
	x := 10
	for _, t := range titles {
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="34" width="12" height="12"/><text x="%d" y="45">%s</text>`+"\n", t.subject, x, x+18, t.title)
		x += 140
	}
	b.WriteString(body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

// bars draws a row at y and returns where the next one begins.
func (r RowResult) bars(b *strings.Builder, y int) int {
	longest := 0.0
	for _, s := range r.Subjects {
		longest = max(longest, s.Median)
	}
	title := strings.TrimPrefix(r.Title, "… ")
	fmt.Fprintf(b, `<text x="10" y="%d">%s</text>`+"\n", y+barHeight-1, html.EscapeString(title))
	for _, t := range titles {
		s, ok := r.Subjects[t.subject]
		if !ok {
			continue
		}
		width := 1.0
		if longest > 0 {
			width = max(1, s.Median/longest*barWidth)
		}
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`, t.subject, labelWidth, y, width, barHeight)
		fmt.Fprintf(b, `<text class="value" x="%.1f" y="%d">%s</text>`+"\n", labelWidth+width+6, y+barHeight-2, html.EscapeString(format(s.Median, r.Unit)))
		y += barHeight + 2
	}
	return y + rowGap
}
