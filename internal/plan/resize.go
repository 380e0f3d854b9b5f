package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// planResize plans the change from the resources in force to the allocated ones. Containers restart
// if their resize policy says so; other running containers are updated in place. Those that do not
// run start with the new resources.
func planResize(in Input, a *Actions) {
	if in.Actual == nil {
		return
	}
	a.Resize = pod.AmountsOf(in.Actual.Pod) != pod.AmountsOf(in.Pod.Spec.Resources)
	for c, kind := range pod.Containers(in.Pod) {
		want, have := pod.EffectiveRequirements(in.Pod, c), in.Actual.ContainerAmounts(c.Name)
		if kind == pod.Ephemeral || pod.AmountsOf(&want) == have {
			continue
		}
		latest := in.Observed.Latest(c.Name)
		switch running := latest != nil && latest.State == pod.Running; {
		case running && !killed(a, latest.ID) && pod.RestartableForResize(c, kind) && resizeRestarts(c, have, pod.AmountsOf(&want)):
			a.Kill = append(a.Kill, Kill{Container: *latest, Kind: kind, Reason: Resized, Restart: true})
			a.Start = append(a.Start, newStart(in, c, kind))
		case running && !killed(a, latest.ID):
			a.Update = append(a.Update, Update{Container: c, ID: latest.ID, Have: have})
		}
		a.Resize = true
	}
}

// killed reports whether the plan kills the container already.
func killed(a *Actions, id string) bool {
	return slices.ContainsFunc(a.Kill, func(k Kill) bool { return k.Container.ID == id })
}

// resizeRestarts reports whether the resize policy restarts the container for this change.
func resizeRestarts(c *v1.Container, have, want pod.Amounts) bool {
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
