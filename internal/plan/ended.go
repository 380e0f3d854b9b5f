package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// hasEnded reports whether the pod has ended: an init container failed and does not restart, or no
// main container will run again. Sidecars and ephemeral containers do not keep a pod running. A pod
// whose status has a terminal phase has ended in any case.
func hasEnded(in Input) bool {
	if in.Status != nil && pod.IsTerminal(in.Status.Phase) {
		return true
	}
	for i := range in.Pod.Spec.InitContainers {
		if c := &in.Pod.Spec.InitContainers[i]; !pod.IsSidecar(c) && initFailed(in, c) {
			return true
		}
	}
	for i := range in.Pod.Spec.Containers {
		if shouldRun(in, &in.Pod.Spec.Containers[i], pod.Main) {
			return false
		}
	}
	return true
}

func initFailed(in Input, c *v1.Container) bool {
	if shouldRun(in, c, pod.Init) {
		return false
	}
	if latest := in.Observed.Latest(c.Name); latest != nil {
		return latest.ExitCode != 0
	}
	return pod.LastTermination(statusOf(in, c.Name)).ExitCode != 0
}

// shouldRun reports whether a container runs or will run.
func shouldRun(in Input, c *v1.Container, kind pod.ContainerKind) bool {
	return pod.ShouldRun(in.Pod, c, kind, in.Observed.Latest(c.Name), statusOf(in, c.Name))
}

func statusOf(in Input, name string) *v1.ContainerStatus {
	if in.Status == nil {
		return nil
	}
	return pod.FindStatus(in.Status, name)
}
