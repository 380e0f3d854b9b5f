package podstatus

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonUnknown      = "ContainerStatusUnknown"
)

// containers fills in the status of every container of the spec: init containers in the
// order of the spec, the others by name, as the API has always shown them.
func containers(in Input, s *v1.PodStatus) {
	for c, kind := range pod.Containers(in.Pod) {
		one := container(in, c, kind)
		switch kind {
		case pod.Init:
			s.InitContainerStatuses = append(s.InitContainerStatuses, one)
		case pod.Main:
			one.AllocatedResourcesStatus = in.given(c.Name)
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
		seen(in, &one, c, instances)
	} else {
		unseen(in, &one, c, kind)
	}
	explain(in, &one, c, kind, latest)
	if kind != pod.Ephemeral {
		started := isStarted(in, c, latest)
		one.Started = &started
		one.Ready = isReady(in, c, kind, &one, latest, started)
	}
	return one
}

// seen describes a container of which the runtime knows at least one instance.
func seen(in Input, one *v1.ContainerStatus, c *v1.Container, instances []pod.Container) {
	latest, previous := &instances[0], pod.FindStatus(&in.Previous, c.Name)
	one.ContainerID = in.containerID(latest.ID)
	one.ImageID = latest.ImageID
	if latest.Image != "" {
		one.Image = latest.Image
	}
	one.RestartCount = int32(latest.RestartCount)
	if previous != nil { // what was counted stays counted
		one.RestartCount = max(one.RestartCount, previous.RestartCount)
	}
	one.User = latest.User
	one.StopSignal = latest.StopSignal
	one.Resources = inForce(in, c, latest)
	one.AllocatedResources = allocated(c)

	switch {
	case latest.State == pod.Running:
		one.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.NewTime(latest.StartedAt)}
	case latest.State == pod.Exited:
		one.State.Terminated = terminated(in, latest)
	case latest.State == pod.Unknown && previous != nil && previous.State.Waiting == nil:
		one.State.Terminated = lost(reasonUnknown, "The container could not be located when the pod was terminated")
	default:
		one.State.Waiting = notYet(in)
	}
	for i := range instances[1:] {
		if older := &instances[i+1]; older.State == pod.Exited {
			one.LastTerminationState.Terminated = terminated(in, older)
			break
		}
	}
	if one.LastTerminationState.Terminated == nil {
		one.LastTerminationState = carriedOver(in, one)
	}
	in.Fields.DropDisabledStatus(one)
}

// carriedOver is the last termination written down before, when the runtime has since
// removed that instance.
func carriedOver(in Input, one *v1.ContainerStatus) v1.ContainerState {
	previous := pod.FindStatus(&in.Previous, one.Name)
	if previous == nil || one.RestartCount == 0 {
		return v1.ContainerState{}
	}
	if previous.ContainerID != one.ContainerID && previous.State.Terminated != nil {
		return previous.State
	}
	return previous.LastTerminationState
}

// explain says of a container that is due what keeps it from running, which matters more
// than how it ended.
func explain(in Input, one *v1.ContainerStatus, c *v1.Container, kind pod.ContainerKind, latest *pod.Container) {
	why, waits := in.Waiting[c.Name]
	if !waits || in.Stopped || in.Pod.DeletionTimestamp != nil || one.State.Running != nil {
		return
	}
	if !pod.Due(in.Pod, c, kind, latest, one) {
		return
	}
	if one.State.Terminated != nil {
		one.LastTerminationState = one.State
	}
	one.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: why.Reason, Message: why.Message}}
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

// isStarted: running, and past its startup probe if it has one.
func isStarted(in Input, c *v1.Container, latest *pod.Container) bool {
	if latest == nil || latest.State != pod.Running {
		return false
	}
	return c.StartupProbe == nil || in.Health(latest.ID).Startup == pod.Passed
}

// isReady: an ordinary init container is ready once it succeeded; the others while they
// run and their readiness probe, if they have one, passes.
func isReady(in Input, c *v1.Container, kind pod.ContainerKind, one *v1.ContainerStatus, latest *pod.Container, started bool) bool {
	if kind == pod.Init && !pod.IsSidecar(c) {
		return one.State.Terminated != nil && one.State.Terminated.ExitCode == 0
	}
	if !started {
		return false
	}
	return c.ReadinessProbe == nil || in.Health(latest.ID).Readiness == pod.Passed
}
