package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// startOf asks for a container, or for an instance of it that was only created.
func startOf(in Input, c *v1.Container, kind pod.ContainerKind) Start {
	s := Start{Container: c, Kind: kind, RestartCount: nextShown(shownOf(in, c.Name))}
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

// nextShown is the count that follows from a container's status. The runtime may have
// forgotten instances, but the count belongs to their log files too, which outlive them, so
// it must not be used twice. A status without an id counts for the instance to come.
func nextShown(shown *v1.ContainerStatus) int {
	switch {
	case shown == nil:
		return 0
	case shown.ContainerID == "" && shown.State.Waiting != nil:
		return int(shown.RestartCount)
	}
	return int(shown.RestartCount) + 1
}

// startEphemeral starts debug containers that were never seen. They are never restarted
// and wait for nothing.
func startEphemeral(in Input, a *Actions) {
	for i := range in.Pod.Spec.EphemeralContainers {
		c := v1.Container(in.Pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if in.Observed.Latest(c.Name) != nil {
			continue
		}
		if shown := shownOf(in, c.Name); shown == nil || pod.LastEnd(shown) == nil {
			a.Start = append(a.Start, startOf(in, &c, pod.Ephemeral))
		}
	}
}
