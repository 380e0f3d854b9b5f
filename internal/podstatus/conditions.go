package podstatus

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/clip"
	"swiftlet/internal/pod"
)

// owned are the conditions that only the kubelet writes. They are derived again each time, never
// carried over from the previous status.
var owned = []v1.PodConditionType{
	v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
	v1.PodResizePending, v1.PodResizeInProgress, v1.AllContainersRestarting,
}

// conditions derives the conditions that the kubelet owns, in the reference kubelet's order, and
// keeps those of other components after them.
func conditions(in Input, s *v1.PodStatus) []v1.PodCondition {
	containersReady := containersReady(in, s)
	all := []v1.PodCondition{
		sandboxReady(in),
		initialized(in, s),
		ready(in, containersReady),
		containersReady,
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
	}
	if in.Failure != nil && in.Failure.Condition != nil {
		all = append(all, *in.Failure.Condition)
	}
	for i := range all {
		all[i].ObservedGeneration = in.Pod.Generation
	}
	if pod.MayRestartAll(in.Pod) {
		all = append(all, allRestarting(in, s))
	}
	if !pod.IsTerminal(s.Phase) {
		all = append(all, resizing(in)...)
	}
	for i := range all {
		all[i].Message = clip.Text(all[i].Message, maxPodMessage) // it may name any number of containers or gates
	}
	for _, list := range [][]v1.PodCondition{in.Pod.Status.Conditions, in.Previous.Conditions} {
		for _, c := range list {
			if !slices.Contains(owned, c.Type) && find(all, c.Type) == nil {
				all = append(all, c)
			}
		}
	}
	return setTransitionTimes(all, in.Previous.Conditions, metav1.NewTime(in.Now))
}

// setTransitionTimes sets the time of each condition at which its status last changed.
func setTransitionTimes(all, previous []v1.PodCondition, now metav1.Time) []v1.PodCondition {
	for i := range all {
		c := &all[i]
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		if before := find(previous, c.Type); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
	}
	return all
}

func sandboxReady(in Input) v1.PodCondition {
	c := v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue}
	if needed, _, reason := pod.SandboxNeeded(in.Pod, in.Observed); needed {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "PodSandboxNotReady", reason
	}
	return c
}

func initialized(in Input, s *v1.PodStatus) v1.PodCondition {
	c := v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue}
	var incomplete []string
	for i := range in.Pod.Spec.InitContainers {
		spec, one := &in.Pod.Spec.InitContainers[i], &s.InitContainerStatuses[i]
		done := one.Ready
		if pod.IsSidecar(spec) {
			done = *one.Started
		}
		if !done {
			incomplete = append(incomplete, spec.Name)
		}
	}
	if s.Phase == v1.PodSucceeded {
		c.Reason = "PodCompleted"
		return c
	}
	// Main containers run only after the init containers, which may have been removed, or may be
	// restarting: a pod that was initialized stays so.
	was := find(in.Previous.Conditions, v1.PodInitialized)
	if len(incomplete) > 0 && !mainStarted(s) && (was == nil || was.Status != v1.ConditionTrue) {
		c.Status, c.Reason = v1.ConditionFalse, "ContainersNotInitialized"
		c.Message = withStatus("incomplete", incomplete)
	}
	return c
}

// mainStarted reports whether any main container has ever run.
func mainStarted(s *v1.PodStatus) bool {
	return slices.ContainsFunc(s.ContainerStatuses, func(c v1.ContainerStatus) bool {
		return c.State.Running != nil || pod.LastTermination(&c) != nil
	})
}

// allRestarting returns the condition that all containers are being restarted.
func allRestarting(in Input, s *v1.PodStatus) v1.PodCondition {
	c := v1.PodCondition{Type: v1.AllContainersRestarting, Status: v1.ConditionFalse}
	switch {
	case s.Phase == v1.PodSucceeded:
		c.Reason = "PodCompleted"
	case s.Phase == v1.PodFailed:
		c.Reason = "PodFailed"
	case pod.RestartingAll(in.Pod, in.Observed):
		c.Status, c.Reason = v1.ConditionTrue, "RestartAllContainersStarted"
		c.Message = "container exited with restart policy rule"
	}
	return c
}

// resizing returns the conditions of a resize that is not complete, each with the generation of the
// spec that it belongs to.
func resizing(in Input) []v1.PodCondition {
	var all []v1.PodCondition
	if pending := in.Resize.Pending; pending != nil {
		all = append(all, v1.PodCondition{
			Type: v1.PodResizePending, Status: v1.ConditionTrue,
			Reason: pending.Reason, Message: pending.Message, ObservedGeneration: pending.Generation,
		})
	}
	if in.Actual != nil && in.Actual.ResizeInProgress(in.Pod, in.Observed) {
		c := v1.PodCondition{Type: v1.PodResizeInProgress, Status: v1.ConditionTrue, ObservedGeneration: in.Resize.Granted}
		if in.Resize.Granted == 0 { // granted before a restart of the kubelet
			c.ObservedGeneration = in.Pod.Generation
			if before := find(in.Previous.Conditions, c.Type); before != nil {
				c.ObservedGeneration = before.ObservedGeneration
			}
		}
		if in.ResizeError != "" {
			c.Reason, c.Message = v1.PodReasonError, in.ResizeError
		}
		all = append(all, c)
	}
	return all
}

// containersReady returns the condition that all containers are ready.
func containersReady(in Input, s *v1.PodStatus) v1.PodCondition {
	c := v1.PodCondition{Type: v1.ContainersReady, Status: v1.ConditionTrue}
	serving := in.Failure != nil && in.Failure.Evicted && !in.Stopped
	switch {
	case s.Phase == v1.PodSucceeded:
		c.Status, c.Reason = v1.ConditionFalse, "PodCompleted"
		return c
	case s.Phase == v1.PodFailed && !serving:
		c.Status, c.Reason = v1.ConditionFalse, "PodFailed"
		return c
	}
	var unready []string
	for i := range in.Pod.Spec.InitContainers {
		if spec := &in.Pod.Spec.InitContainers[i]; pod.IsSidecar(spec) && !s.InitContainerStatuses[i].Ready {
			unready = append(unready, spec.Name)
		}
	}
	for i := range in.Pod.Spec.Containers {
		if name := in.Pod.Spec.Containers[i].Name; !pod.FindStatus(s, name).Ready {
			unready = append(unready, name)
		}
	}
	if len(unready) > 0 {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "ContainersNotReady", withStatus("unready", unready)
	}
	return c
}

// ready returns the Ready condition: all containers are ready and all readiness gates are true.
func ready(in Input, containersReady v1.PodCondition) v1.PodCondition {
	c := containersReady
	c.Type = v1.PodReady
	if c.Status != v1.ConditionTrue {
		return c
	}
	var notReady []string
	for _, gate := range in.Pod.Spec.ReadinessGates {
		condition := find(in.Pod.Status.Conditions, gate.ConditionType)
		switch {
		case condition == nil:
			notReady = append(notReady, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case condition.Status != v1.ConditionTrue:
			notReady = append(notReady, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, condition.Status))
		}
	}
	if len(notReady) > 0 {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "ReadinessGatesNotReady", strings.Join(notReady, ", ")
	}
	return c
}

func withStatus(what string, names []string) string {
	return fmt.Sprintf("containers with %s status: %s", what, names)
}

func find(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	i := slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
