package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// exitUnknown is the exit code of a container whose exit was not observed: that of SIGKILL.
const exitUnknown = 137

// withoutInstance sets the status of a container of which the runtime has no instance: it has not
// started yet, or has been removed.
func withoutInstance(in Input, one *v1.ContainerStatus, c *v1.Container, kind pod.ContainerKind) {
	one.State.Waiting = defaultWaiting(in)
	if previous := pod.FindStatus(&in.Previous, c.Name); previous != nil {
		fromPrevious(in, one, c, previous)
	}
	past := kind == pod.Init && !pod.IsSidecar(c) && in.Observed.MainCreated(in.Pod) && !in.restartingAll
	if past && one.State.Waiting != nil {
		one.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason:  "Completed",
			Message: "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally",
		}}
	}
}

// fromPrevious sets the status of a removed container from the previous status. The restart count of
// a container that will restart already includes its next run.
func fromPrevious(in Input, one *v1.ContainerStatus, c *v1.Container, previous *v1.ContainerStatus) {
	switch {
	case in.restartingAll && previous.State.Waiting == nil:
		const message = "The container is removed because RestartAllContainers in place"
		one.RestartCount = previous.RestartCount + 1
		one.State.Waiting = &v1.ContainerStateWaiting{Reason: pod.ReasonRestartingAll, Message: message}
		one.LastTerminationState.Terminated = unknownExit(pod.ReasonRestartingAll, message)
		return
	case previous.State.Terminated != nil:
		*one = *previous.DeepCopy()
		one.VolumeMounts = mounts(in, c)
		return
	case previous.State.Running != nil:
		one.LastTerminationState.Terminated = unknownExit(reasonUnknown,
			"The container could not be located when the pod was deleted.  The container used to be Running")
	default:
		one.LastTerminationState = previous.LastTerminationState
	}
	one.RestartCount = previous.RestartCount
	if previous.ContainerID != "" && in.Pod.DeletionTimestamp == nil {
		one.RestartCount++
	}
}

// restartsAll reports whether all containers of the pod are being restarted. The container whose
// exit caused it is removed last; after that only the previous status shows it.
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

func unknownExit(reason, message string) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{Reason: reason, Message: message, ExitCode: exitUnknown}
}

// defaultWaiting returns the state of a container that waits for its turn.
func defaultWaiting(in Input) *v1.ContainerStateWaiting {
	if len(in.Pod.Spec.InitContainers) > 0 {
		return &v1.ContainerStateWaiting{Reason: pod.ReasonInitializing}
	}
	return &v1.ContainerStateWaiting{Reason: pod.ReasonCreating}
}
