package page

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// newPodRow describes a pod with its status; report is nil for a pod whose steps are not known.
func newPodRow(p *v1.Pod, report *why.Report, used podUse) PodRow {
	row := PodRow{
		UID: p.UID, Namespace: p.Namespace, Name: p.Name, Phase: statusText(p), IP: p.Status.PodIP,
		Created: p.CreationTimestamp.Time, CPU: used.cpu, Memory: used.memory, Containers: []string{},
	}
	if row.Created.IsZero() && p.Status.StartTime != nil { // of a manifest
		row.Created = p.Status.StartTime.Time
	}
	if report != nil {
		if row.Up = report.Cause.Up; !row.Up {
			row.Sentence = report.Cause.Note()
		}
	}
	ready, all := 0, 0
	for c, kind := range pod.Containers(p) {
		row.Containers = append(row.Containers, c.Name)
		s := pod.FindStatus(&p.Status, c.Name)
		if counted := kind == pod.Main || kind == pod.Init && pod.IsSidecar(c); counted {
			all++
			if s != nil && s.Ready {
				ready++
			}
		}
		if s == nil || kind == pod.Ephemeral {
			continue
		}
		row.Restarts += s.RestartCount
		if last := s.LastTerminationState.Terminated; last != nil && last.FinishedAt.After(row.LastRestart) {
			row.LastRestart = last.FinishedAt.Time
		}
	}
	row.Ready = fmt.Sprintf("%d/%d", ready, all)
	return row
}
