package why

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Write writes the report for people: the sentence, then the steps in the order in which they began.
// Times are in the given zone.
func (r Report) Write(w io.Writer, zone *time.Location) error {
	at := r.At.In(zone)
	subject := plain(fmt.Sprintf("Pod %s/%s, %s", r.Namespace, r.Name, r.state()))
	if _, err := fmt.Fprintf(w, "%s\n\n%s as of %s\n", r.Cause.Sentence(at), subject, clockTime(at, at)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, s := range r.Steps {
		branch := "├─"
		if i == len(r.Steps)-1 && r.Omitted == 0 {
			branch = "└─"
		}
		fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\n", branch, plain(s.title()), clockTime(s.Since.In(zone), at), plain(s.outcome(at)), s.detail(at))
	}
	if r.Omitted > 0 {
		fmt.Fprintf(table, "└─ and %d more steps, all done\t\t\t\n", r.Omitted)
	}
	return table.Flush()
}

func (r Report) state() string {
	if r.Stage != Starting.String() {
		return r.Stage
	}
	if r.Ready {
		return "ready"
	}
	return strings.ToLower(string(r.Phase))
}

func (s StepReport) title() string {
	if s.Name == "" {
		return s.Kind.String()
	}
	return s.Kind.String() + " " + s.Name
}

func (s StepReport) outcome(at time.Time) string {
	switch s.State {
	case running, queued:
		return fmt.Sprintf("%s for %s", s.State, short(at.Sub(s.Began)))
	case failed:
		return failed
	}
	return "done in " + short(s.Ended.Sub(s.Began))
}

func (s StepReport) detail(at time.Time) string {
	var parts []string
	if s.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("%.1f MB", float64(s.Bytes)/1e6))
	}
	if s.Attempts > 1 {
		parts = append(parts, fmt.Sprintf("%d attempts", s.Attempts))
	}
	if !s.Next.IsZero() {
		parts = append(parts, "next at "+clockTime(s.Next, at))
	}
	if s.Error != "" {
		text := oneLine(s.Error)
		if s.State == done {
			text = "earlier: " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// short rounds a duration to what is worth reading.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
