package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// newStart returns a Start for a new instance, or for one that is created and not yet started.
func newStart(in Input, c *v1.Container, kind pod.ContainerKind) Start {
	s := Start{Container: c, Kind: kind, RestartCount: nextRestartCount(statusOf(in, c.Name))}
	latest := in.Observed.Latest(c.Name)
	switch {
	case latest == nil:
	case latest.State == pod.Created && in.Observed.Current(c.Name) != nil && latest.Hash == in.Hash(c):
		s.Adopt, s.RestartCount = latest.ID, latest.RestartCount
	default:
		s.RestartCount = max(s.RestartCount, latest.RestartCount+1)
	}
	return s
}

// nextRestartCount returns the restart count that follows from a container's status. The runtime may
// have no instance any more, but the count is also part of the names of log files, which outlive the
// instances, so it must not be used twice. A status without a container id already has the count of
// the next instance.
func nextRestartCount(status *v1.ContainerStatus) int {
	switch {
	case status == nil:
		return 0
	case status.ContainerID == "" && status.State.Waiting != nil:
		return int(status.RestartCount)
	}
	return int(status.RestartCount) + 1
}

// startEphemeral starts ephemeral containers that have never run. They do not restart and do not
// wait for init containers.
func startEphemeral(in Input, a *Actions) {
	for i := range in.Pod.Spec.EphemeralContainers {
		c := v1.Container(in.Pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if in.Observed.Latest(c.Name) != nil {
			continue
		}
		if status := statusOf(in, c.Name); status == nil || pod.LastTermination(status) == nil {
			a.Start = append(a.Start, newStart(in, &c, pod.Ephemeral))
		}
	}
}
