package podstatus

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/clip"
	"swiftlet/internal/pod"
)

const reasonUnknown = "ContainerStatusUnknown"

// containers sets the status of every container of the spec: init containers in the order of the
// spec, the others sorted by name, as the reference kubelet does.
func containers(in Input, s *v1.PodStatus) {
	for c, kind := range pod.Containers(in.Pod) {
		one := container(in, c, kind)
		switch kind {
		case pod.Init:
			s.InitContainerStatuses = append(s.InitContainerStatuses, one)
		case pod.Main:
			one.AllocatedResourcesStatus = in.resourceHealth(c.Name)
			s.ContainerStatuses = append(s.ContainerStatuses, one)
		case pod.Ephemeral:
			s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, one)
		}
	}
	byName := func(a, b v1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(s.ContainerStatuses, byName)
	slices.SortFunc(s.EphemeralContainerStatuses, byName)
}

// container derives the status of one container.
func container(in Input, c *v1.Container, kind pod.ContainerKind) v1.ContainerStatus {
	one := v1.ContainerStatus{Name: c.Name, Image: c.Image, VolumeMounts: mounts(in, c)}
	instances := in.Observed.Instances(c.Name)
	var latest *pod.Container
	if len(instances) > 0 {
		latest = &instances[0]
		fromInstances(in, &one, c, instances)
	} else {
		withoutInstance(in, &one, c, kind)
	}
	setWaiting(in, &one, c, kind, latest)
	if kind != pod.Ephemeral {
		started := isStarted(in, c, latest)
		one.Started = &started
		one.Ready = isReady(in, c, kind, &one, latest, started)
	}
	return one
}

// fromInstances sets the status of a container of which the runtime has at least one instance.
func fromInstances(in Input, one *v1.ContainerStatus, c *v1.Container, instances []pod.Container) {
	latest, previous := &instances[0], pod.FindStatus(&in.Previous, c.Name)
	one.ContainerID = in.containerID(latest.ID)
	one.ImageID = latest.ImageID
	if latest.Image != "" {
		one.Image = latest.Image
	}
	one.RestartCount = int32(latest.RestartCount)
	if previous != nil { // it never decreases
		one.RestartCount = max(one.RestartCount, previous.RestartCount)
	}
	one.User = latest.User
	one.StopSignal = latest.StopSignal
	one.Resources = actualResources(in, c, latest)
	one.AllocatedResources = allocatedRequests(c)

	switch {
	case latest.State == pod.Running:
		one.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.NewTime(latest.StartedAt)}
	case latest.State == pod.Exited:
		one.State.Terminated = terminated(in, latest)
	case latest.State == pod.Unknown && previous != nil && previous.State.Waiting == nil:
		one.State.Terminated = unknownExit(reasonUnknown, "The container could not be located when the pod was terminated")
	default:
		one.State.Waiting = defaultWaiting(in)
	}
	for i := range instances[1:] {
		if older := &instances[i+1]; older.State == pod.Exited {
			one.LastTerminationState.Terminated = terminated(in, older)
			break
		}
	}
	if one.LastTerminationState.Terminated == nil {
		one.LastTerminationState = previousTermination(in, one)
	}
	in.Fields.DropDisabledStatus(one)
}

// previousTermination returns the last termination of the previous status, for an instance that has
// been removed since.
func previousTermination(in Input, one *v1.ContainerStatus) v1.ContainerState {
	previous := pod.FindStatus(&in.Previous, one.Name)
	if previous == nil || one.RestartCount == 0 {
		return v1.ContainerState{}
	}
	if previous.ContainerID != one.ContainerID && previous.State.Terminated != nil {
		return previous.State
	}
	return previous.LastTerminationState
}

// setWaiting replaces the state of a container that should run but failed to start by the reason it
// waits for.
func setWaiting(in Input, one *v1.ContainerStatus, c *v1.Container, kind pod.ContainerKind, latest *pod.Container) {
	waiting, found := in.Waiting[c.Name]
	if !found || in.Stopped || in.Pod.DeletionTimestamp != nil || one.State.Running != nil {
		return
	}
	if !pod.ShouldRun(in.Pod, c, kind, latest, one) {
		return
	}
	if one.State.Terminated != nil {
		one.LastTerminationState = one.State
	}
	one.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: waiting.Reason, Message: clip.Text(waiting.Message, clip.Message)}}
}

func terminated(in Input, c *pod.Container) *v1.ContainerStateTerminated {
	reason := c.Reason
	if reason == "" {
		reason = "Error"
		if c.ExitCode == 0 {
			reason = "Completed"
		}
	}
	return &v1.ContainerStateTerminated{
		ExitCode:    c.ExitCode,
		Reason:      reason,
		Message:     c.Message,
		StartedAt:   metav1.NewTime(c.StartedAt),
		FinishedAt:  metav1.NewTime(c.FinishedAt),
		ContainerID: in.containerID(c.ID),
	}
}

func (in Input) containerID(id string) string { return in.Runtime + "://" + id }

// isStarted reports whether the container runs and has passed its startup probe, if it has one.
func isStarted(in Input, c *v1.Container, latest *pod.Container) bool {
	if latest == nil || latest.State != pod.Running {
		return false
	}
	return c.StartupProbe == nil || in.Health(latest.ID).Startup == pod.Passed
}

// isReady reports whether an init container has succeeded, or another container runs and passes its
// readiness probe, if it has one.
func isReady(in Input, c *v1.Container, kind pod.ContainerKind, one *v1.ContainerStatus, latest *pod.Container, started bool) bool {
	if kind == pod.Init && !pod.IsSidecar(c) {
		return one.State.Terminated != nil && one.State.Terminated.ExitCode == 0
	}
	if !started {
		return false
	}
	return c.ReadinessProbe == nil || in.Health(latest.ID).Readiness == pod.Passed
}
