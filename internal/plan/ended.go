package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// ended reports whether the pod's containers have done their part: an init container failed
// for good, or no main container is to run any more. Sidecars and ephemeral containers do
// not keep a pod. One that was once said to have ended, for whatever reason, has.
func ended(in Input) bool {
	if in.Shown != nil && pod.IsTerminal(in.Shown.Phase) {
		return true
	}
	for i := range in.Pod.Spec.InitContainers {
		if c := &in.Pod.Spec.InitContainers[i]; !pod.IsSidecar(c) && failedForGood(in, c) {
			return true
		}
	}
	for i := range in.Pod.Spec.Containers {
		if due(in, &in.Pod.Spec.Containers[i], pod.Main) {
			return false
		}
	}
	return true
}

func failedForGood(in Input, c *v1.Container) bool {
	if due(in, c, pod.Init) {
		return false
	}
	if latest := in.Observed.Latest(c.Name); latest != nil {
		return latest.ExitCode != 0
	}
	return pod.LastEnd(shownOf(in, c.Name)).ExitCode != 0
}

// due reports whether a container runs or is to run.
func due(in Input, c *v1.Container, kind pod.ContainerKind) bool {
	return pod.Due(in.Pod, c, kind, in.Observed.Latest(c.Name), shownOf(in, c.Name))
}

func shownOf(in Input, name string) *v1.ContainerStatus {
	if in.Shown == nil {
		return nil
	}
	return pod.FindStatus(in.Shown, name)
}
