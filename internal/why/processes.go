package why

import (
	"fmt"
	"slices"
	"strings"
)

// Process is a process of a pod.
type Process struct {
	PID int `json:"pid"`
	// Name is the command's, at most 15 bytes.
	Name string `json:"name"`
	// State is the letter of /proc: D waits in the kernel, and cannot be killed.
	State string `json:"state"`
}

// maxProcesses is the number of processes that a sentence names, maxListed that of those in a report.
const (
	maxProcesses = 3
	maxListed    = 100
)

// AwaitsProcesses reports whether the pod waits for the end of processes.
func (r *Report) AwaitsProcesses() bool {
	s := r.Cause.Step
	return s != nil && (s.Kind == Kill || s.Kind == RemoveCgroup)
}

// NameProcesses adds the processes of the pod to the sentence, those first that cannot be killed.
func (r *Report) NameProcesses(all []Process) {
	if len(all) == 0 {
		return
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Process) int { return stuck(b) - stuck(a) })
	r.Processes = slices.Clone(sorted[:min(len(all), maxListed)])
	var names []string
	for _, p := range sorted[:min(len(all), maxProcesses)] {
		names = append(names, fmt.Sprintf("process %d %s in state %s", p.PID, p.Name, p.State))
	}
	if more := len(all) - maxProcesses; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if r.Cause.Text != "" {
		names = append([]string{r.Cause.Text}, names...)
	}
	r.Cause.Text = strings.Join(names, ", ")
	r.Sentence = r.Cause.Sentence(r.At)
}

func stuck(p Process) int {
	if p.State == "D" {
		return 1
	}
	return 0
}
