package podstatus

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

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
	for _, list := range [][]v1.PodCondition{in.Pod.Status.Conditions, in.Previous.Conditions} {
		for _, c := range list {
			if !slices.ContainsFunc(all, func(own v1.PodCondition) bool { return own.Type == c.Type }) {
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
		if j := slices.IndexFunc(previous, func(p v1.PodCondition) bool { return p.Type == c.Type }); j >= 0 && previous[j].Status == c.Status {
			c.LastTransitionTime = previous[j].LastTransitionTime
		}
	}
	return all
}

func sandboxReady(in Input) v1.PodCondition {
	c := v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue}
	sandbox := in.Observed.Sandbox()
	if sandbox == nil || !sandbox.Ready || (!in.Pod.Spec.HostNetwork && len(sandbox.IPs) == 0) {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "PodSandboxNotReady", "pod sandbox is not ready"
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
	// Main containers run only behind the init containers, which may be forgotten by now.
	if len(incomplete) > 0 && !begun(s) {
		c.Status, c.Reason = v1.ConditionFalse, "ContainersNotInitialized"
		c.Message = listed("incomplete", incomplete)
	}
	return c
}

// begun reports whether any main container ever ran.
func begun(s *v1.PodStatus) bool {
	return slices.ContainsFunc(s.ContainerStatuses, func(c v1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

// readyToServe is the condition that all containers are ready.
func readyToServe(in Input, s *v1.PodStatus) v1.PodCondition {
	c := v1.PodCondition{Type: v1.ContainersReady, Status: v1.ConditionTrue}
	switch s.Phase {
	case v1.PodSucceeded:
		c.Status, c.Reason = v1.ConditionFalse, "PodCompleted"
		return c
	case v1.PodFailed:
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
		if name := in.Pod.Spec.Containers[i].Name; !find(*s, name).Ready {
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
		i := slices.IndexFunc(in.Pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == gate.ConditionType })
		switch {
		case i < 0:
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case in.Pod.Status.Conditions[i].Status != v1.ConditionTrue:
			closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, in.Pod.Status.Conditions[i].Status))
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
