package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// exitUnknown is the exit code of a container that was not seen to exit: as if killed.
const exitUnknown = 137

// unseen describes a container of which the runtime knows nothing: not started yet, or
// removed since.
func unseen(in Input, one *v1.ContainerStatus, c *v1.Container, kind pod.ContainerKind) {
	one.State.Waiting = notYet(in)
	if previous := pod.FindStatus(&in.Previous, c.Name); previous != nil {
		recall(in, one, c, previous)
	}
	past := kind == pod.Init && !pod.IsSidecar(c) && in.Observed.Begun(in.Pod) && !in.restartingAll
	if past && one.State.Waiting != nil {
		one.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason:  "Completed",
			Message: "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally",
		}}
	}
}

// recall fills in what was written down of a container that the runtime has forgotten. A
// container that is to run again has its next run counted already.
func recall(in Input, one *v1.ContainerStatus, c *v1.Container, previous *v1.ContainerStatus) {
	switch {
	case in.restartingAll && previous.State.Waiting == nil:
		const message = "The container is removed because RestartAllContainers in place"
		one.RestartCount = previous.RestartCount + 1
		one.State.Waiting = &v1.ContainerStateWaiting{Reason: pod.ReasonRestartingAll, Message: message}
		one.LastTerminationState.Terminated = lost(pod.ReasonRestartingAll, message)
		return
	case previous.State.Terminated != nil:
		*one = *previous.DeepCopy()
		one.VolumeMounts = mounts(in, c)
		return
	case previous.State.Running != nil:
		one.LastTerminationState.Terminated = lost(reasonUnknown,
			"The container could not be located when the pod was deleted.  The container used to be Running")
	default:
		one.LastTerminationState = previous.LastTerminationState
	}
	one.RestartCount = previous.RestartCount
	if previous.ContainerID != "" && in.Pod.DeletionTimestamp == nil {
		one.RestartCount++
	}
}

// restartsAll reports whether all containers of the pod are being run anew. The exit that
// asked for it is the last to go; right after that only the previous status tells.
func restartsAll(in Input) bool {
	if !pod.MayRestartAll(in.Pod) {
		return false
	}
	if pod.RestartingAll(in.Pod, in.Observed) || slices.ContainsFunc(in.Previous.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.AllContainersRestarting && c.Status == v1.ConditionTrue
	}) {
		return true
	}
	for c := range pod.Containers(in.Pod) {
		previous := pod.FindStatus(&in.Previous, c.Name)
		if previous != nil && previous.State.Terminated != nil && in.Observed.Latest(c.Name) == nil &&
			pod.RestartsAll(c, previous.State.Terminated.ExitCode) {
			return true
		}
	}
	return false
}

func lost(reason, message string) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{Reason: reason, Message: message, ExitCode: exitUnknown}
}

// notYet is why a container waits if nothing keeps it from running but its turn.
func notYet(in Input) *v1.ContainerStateWaiting {
	if len(in.Pod.Spec.InitContainers) > 0 {
		return &v1.ContainerStateWaiting{Reason: reasonInitializing}
	}
	return &v1.ContainerStateWaiting{Reason: reasonCreating}
}
