package standalone

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// table renders one row per pod, with the columns and status words of kubectl, and a note below the
// row of a pod that is not up.
func table(pods []shownPod, now time.Time, colours bool) string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tSTATUS\tREADY\tRESTARTS\tAGE\tIP")
	for _, p := range pods {
		ready, restarts := readyAndRestarts(p.Pod)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", p.Namespace, p.Name, podStatusText(p.Pod), ready, restarts, age(now.Sub(startOf(p.Pod))), orDash(p.Status.PodIP))
	}
	_ = w.Flush()
	rows := slices.Collect(strings.Lines(out.String()))
	status := strings.Index(rows[0], "STATUS")
	for i, p := range pods {
		text := orElse(p.note, awaitedDevice(p.Pod))
		if colours {
			c := colourOf(p.Pod)
			rows[i+1] = paintAt(rows[i+1], status, c)
			if text != "" {
				text = c.paint(text)
			}
		}
		if text != "" {
			rows[i+1] += notePrefix + text + "\n"
		}
	}
	return strings.Join(rows, "")
}

// notePrefix distinguishes notes from the rows of pods.
const notePrefix = "  "

// awaitedDevice names the devices that the pod waits for, "" if there are none.
func awaitedDevice(p *v1.Pod) string {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && w.Reason == pod.ReasonWaitingForDevice {
			return w.Message
		}
	}
	return ""
}

// statusLine describes one pod without its age: equal lines mean that nothing changed.
func statusLine(p *v1.Pod) string {
	ready, restarts := readyAndRestarts(p)
	note := awaitedDevice(p)
	if note != "" {
		note = ": " + note
	}
	return fmt.Sprintf("%s/%s %s ready %s restarts %d ip %s%s", p.Namespace, p.Name, podStatusText(p), ready, restarts, orDash(p.Status.PodIP), note)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func startOf(p *v1.Pod) time.Time {
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Time
	}
	return p.CreationTimestamp.Time
}

func age(d time.Duration) string {
	switch {
	case d < 0 || d > 100*365*24*time.Hour:
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// readyAndRestarts returns "ready/total" of main containers and sidecars, and the sum of all restarts.
func readyAndRestarts(p *v1.Pod) (ready string, restarts int32) {
	up, all := 0, len(p.Spec.Containers)
	for _, s := range p.Status.ContainerStatuses {
		if s.Ready {
			up++
		}
		restarts += s.RestartCount
	}
	sidecars := map[string]bool{}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; pod.IsSidecar(c) {
			sidecars[c.Name] = true
			all++
		}
	}
	for _, s := range p.Status.InitContainerStatuses {
		if sidecars[s.Name] && s.Ready {
			up++
		}
		restarts += s.RestartCount
	}
	return fmt.Sprintf("%d/%d", up, all), restarts
}

// podStatusText is the STATUS column of kubectl: a reason of the pod or of a container if
// there is one, else the phase.
func podStatusText(p *v1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Terminating"
	}
	if p.Status.Reason != "" {
		return p.Status.Reason
	}
	if p.Status.Phase == v1.PodSucceeded {
		return "Completed"
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
			return w.Reason
		}
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return orElse(t.Reason, "Error")
		}
	}
	return orElse(string(p.Status.Phase), "Pending")
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// redraw returns what to write to a terminal that shows old, which ends with a newline, so
// that it shows text instead: move up to its first line, then overwrite each line.
func redraw(old, text string) string {
	var out strings.Builder
	if n := strings.Count(old, "\n"); n > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r", n)
	}
	out.WriteString("\x1b[?7l") // the terminal cuts wide rows and does not wrap them: rows are counted
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimSuffix(line, "\n") + "\x1b[K\n")
	}
	out.WriteString("\x1b[?7h\x1b[J")
	return out.String()
}

// truncateRows drops the last pods of a table that is higher than the terminal: lines that
// have scrolled out of view cannot be redrawn.
func truncateRows(table string, rows int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(table, "\n"), "\n")
	room := rows - 2 // one for the remark, one for the cursor
	if rows <= 0 || len(lines) < rows || room < 1 {
		return table
	}
	more := 0
	for _, l := range lines[room:] {
		if !strings.HasPrefix(l, notePrefix) {
			more++
		}
	}
	return strings.Join(lines[:room], "") + fmt.Sprintf("… and %d more\n", more)
}
