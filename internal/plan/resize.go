package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// planResize brings what the pod has in line with what it was given. A container whose
// policy asks for it is run anew, the others take the change as they run; those that do
// not run will start with it.
func planResize(in Input, a *Actions) {
	if in.Actual == nil {
		return
	}
	a.Resize = pod.AmountsOf(in.Actual.Pod) != pod.AmountsOf(in.Pod.Spec.Resources)
	for c, kind := range pod.Containers(in.Pod) {
		want, have := pod.Bounded(in.Pod, c), in.Actual.Have(c.Name)
		if kind == pod.Ephemeral || pod.AmountsOf(&want) == have {
			continue
		}
		latest := in.Observed.Latest(c.Name)
		switch running := latest != nil && latest.State == pod.Running; {
		case running && !killed(a, latest.ID) && pod.Restartable(c, kind) && restarts(c, have, pod.AmountsOf(&want)):
			a.Kill = append(a.Kill, Kill{Container: *latest, Kind: kind, Reason: Resized, Restart: true})
			a.Start = append(a.Start, startOf(in, c, kind))
		case running && !killed(a, latest.ID):
			a.Update = append(a.Update, Update{Container: c, ID: latest.ID, Have: have})
		}
		a.Resize = true
	}
}

// killed reports whether the container is to stop anyway.
func killed(a *Actions, id string) bool {
	return slices.ContainsFunc(a.Kill, func(k Kill) bool { return k.Container.ID == id })
}

// restarts reports whether the container is to be run anew for this change.
func restarts(c *v1.Container, have, want pod.Amounts) bool {
	for _, policy := range c.ResizePolicy {
		if policy.RestartPolicy != v1.RestartContainer {
			continue
		}
		switch policy.ResourceName {
		case v1.ResourceCPU:
			if have.CPURequest != want.CPURequest || have.CPULimit != want.CPULimit {
				return true
			}
		case v1.ResourceMemory:
			if have.MemoryRequest != want.MemoryRequest || have.MemoryLimit != want.MemoryLimit {
				return true
			}
		}
	}
	return false
}
