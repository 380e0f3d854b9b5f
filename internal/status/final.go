package status

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// finalStatus returns the last status of a pod that has nothing left on the node: a container whose exit
// was not observed is terminated with an unknown status, and the phase is terminal.
func finalStatus(p *v1.Pod, last v1.PodStatus) v1.PodStatus {
	s := *last.DeepCopy()
	if hasStartedMain(p, &s) {
		for i := range s.ContainerStatuses {
			markUnknown(&s.ContainerStatuses[i])
		}
	}
	for i := range attempted(s.InitContainerStatuses) {
		markUnknown(&s.InitContainerStatuses[i])
	}
	for i := range s.EphemeralContainerStatuses {
		if s.EphemeralContainerStatuses[i].State.Running != nil {
			markUnknown(&s.EphemeralContainerStatuses[i])
		}
	}
	if !pod.IsTerminal(s.Phase) && !pod.IsStatic(p) {
		s.Phase = v1.PodFailed
	}
	return s
}

// markUnknown sets a terminated state with the exit code of SIGKILL, unless the container has one.
func markUnknown(c *v1.ContainerStatus) {
	if c.State.Terminated != nil {
		return
	}
	c.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		Reason:   "ContainerStatusUnknown",
		Message:  "The container could not be located when the pod was terminated",
		ExitCode: 137,
	}}
	c.Ready = false
}

// hasStartedMain reports whether the main containers may have started. Otherwise they never existed.
func hasStartedMain(p *v1.Pod, s *v1.PodStatus) bool {
	if len(p.Spec.InitContainers) == 0 {
		return true
	}
	for _, c := range s.ContainerStatuses {
		if c.LastTerminationState.Terminated != nil || c.State.Waiting == nil {
			return true
		}
	}
	if len(s.InitContainerStatuses) == 0 {
		return false
	}
	last := &s.InitContainerStatuses[len(s.InitContainerStatuses)-1]
	spec := pod.FindContainer(p, last.Name)
	if spec != nil && pod.IsSidecar(spec) {
		return last.State.Running != nil && last.Started != nil && *last.Started
	}
	return succeeded(last.State) || succeeded(last.LastTerminationState)
}

func succeeded(s v1.ContainerState) bool { return s.Terminated != nil && s.Terminated.ExitCode == 0 }

// attempted returns the init containers up to the last one that has started, at least the first.
func attempted(list []v1.ContainerStatus) []v1.ContainerStatus {
	for i := len(list) - 1; i > 0; i-- {
		if list[i].State.Waiting == nil || list[i].LastTerminationState.Terminated != nil {
			return list[:i+1]
		}
	}
	return list[:min(1, len(list))]
}
