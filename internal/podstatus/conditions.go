package podstatus

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

// owned are the conditions that the kubelet alone writes. They are derived anew each time:
// one that was true yesterday says nothing about today.
var owned = []v1.PodConditionType{
	v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
	v1.PodResizePending, v1.PodResizeInProgress, v1.AllContainersRestarting,
}

// conditions derives the conditions the kubelet owns, in the order the API has always
// shown them, behind which those of others are kept.
func conditions(in Input, s *v1.PodStatus) []v1.PodCondition {
	containersReady := readyToServe(in, s)
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
		all = append(all, restarting(in, s))
	}
	if !pod.IsTerminal(s.Phase) {
		all = append(all, resizing(in)...)
	}
	for _, list := range [][]v1.PodCondition{in.Pod.Status.Conditions, in.Previous.Conditions} {
		for _, c := range list {
			if !slices.Contains(owned, c.Type) && find(all, c.Type) == nil {
				all = append(all, c)
			}
		}
	}
	return keepTransitions(all, in.Previous.Conditions, metav1.NewTime(in.Now))
}

// keepTransitions dates each condition from when its status last changed.
func keepTransitions(all, previous []v1.PodCondition, now metav1.Time) []v1.PodCondition {
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
	if needed, _, why := pod.SandboxNeeded(in.Pod, in.Observed); needed {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "PodSandboxNotReady", why
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
	// Main containers run only behind the init containers, which may be forgotten by now, or
	// be run anew: once a pod was initialized, it is never said not to be.
	was := find(in.Previous.Conditions, v1.PodInitialized)
	if len(incomplete) > 0 && !begun(s) && (was == nil || was.Status != v1.ConditionTrue) {
		c.Status, c.Reason = v1.ConditionFalse, "ContainersNotInitialized"
		c.Message = listed("incomplete", incomplete)
	}
	return c
}

// begun reports whether any main container ever ran.
func begun(s *v1.PodStatus) bool {
	return slices.ContainsFunc(s.ContainerStatuses, func(c v1.ContainerStatus) bool {
		return c.State.Running != nil || pod.LastEnd(&c) != nil
	})
}

// restarting is the condition that all containers are being run anew.
func restarting(in Input, s *v1.PodStatus) v1.PodCondition {
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

// resizing are the conditions of a resize that is not complete, each with the generation
// of the spec that it is about.
func resizing(in Input) []v1.PodCondition {
	var all []v1.PodCondition
	if pending := in.Resize.Pending; pending != nil {
		all = append(all, v1.PodCondition{
			Type: v1.PodResizePending, Status: v1.ConditionTrue,
			Reason: pending.Reason, Message: pending.Message, ObservedGeneration: pending.Generation,
		})
	}
	if in.Actual != nil && in.Actual.Behind(in.Pod, in.Observed) {
		c := v1.PodCondition{Type: v1.PodResizeInProgress, Status: v1.ConditionTrue, ObservedGeneration: in.Resize.Granted}
		if in.Resize.Granted == 0 { // another agent granted it
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

// readyToServe is the condition that all containers are ready.
func readyToServe(in Input, s *v1.PodStatus) v1.PodCondition {
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
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "ContainersNotReady", listed("unready", unready)
	}
	return c
}

// ready is the condition that the pod may be served traffic: its containers are ready and
// so are the gates that others guard.
func ready(in Input, containersReady v1.PodCondition) v1.PodCondition {
	c := containersReady
	c.Type = v1.PodReady
	if c.Status != v1.ConditionTrue {
		return c
	}
	var closed []string
	for _, gate := range in.Pod.Spec.ReadinessGates {
		guard := find(in.Pod.Status.Conditions, gate.ConditionType)
		switch {
		case guard == nil:
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case guard.Status != v1.ConditionTrue:
			closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, guard.Status))
		}
	}
	if len(closed) > 0 {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "ReadinessGatesNotReady", strings.Join(closed, ", ")
	}
	return c
}

func listed(what string, names []string) string {
	return fmt.Sprintf("containers with %s status: %s", what, names)
}

func find(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	i := slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
