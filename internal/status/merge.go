package status

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

// owned are the conditions that only the kubelet writes.
var owned = []v1.PodConditionType{
	v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
	v1.PodResizeInProgress, v1.PodResizePending, v1.AllContainersRestarting,
}

// isOwned includes DisruptionTarget, which other components may set as well.
func isOwned(t v1.PodConditionType) bool {
	return t == v1.DisruptionTarget || slices.Contains(owned, t)
}

// merge completes a newly derived status from the last one: conditions of other components, transition
// times, the start time. object is the API server's object, nil if there is none. now must not be used elsewhere.
func merge(p, object *v1.Pod, old, now v1.PodStatus, at time.Time) v1.PodStatus {
	delayTerminal(p, &old, &now)
	keepTerminal(&old, &now)
	setTransitionTimes(object, old.Conditions, now.Conditions, at)
	now.Conditions = mergeConditions(p, object, &old, now.Conditions)
	switch {
	case !old.StartTime.IsZero():
		now.StartTime = old.StartTime.DeepCopy()
	case now.StartTime.IsZero():
		now.StartTime = &metav1.Time{Time: at}
	}
	now.ObservedGeneration = max(p.Generation, old.ObservedGeneration)
	if object != nil {
		// It decreases with that of the API server, which may be restored from a backup.
		now.ObservedGeneration = max(p.Generation, object.Status.ObservedGeneration)
		now.NominatedNodeName = object.Status.NominatedNodeName
		now.ResourceClaimStatuses = object.Status.ResourceClaimStatuses
		now.ExtendedResourceClaimStatus = object.Status.ExtendedResourceClaimStatus
		now.NodeAllocatableResourceClaimStatuses = object.Status.NodeAllocatableResourceClaimStatuses
	}
	if now.QOSClass == "" {
		now.QOSClass = old.QOSClass
	}
	if now.VolumeHealth == nil { // unknown; without unhealthy volumes it is an empty list
		now.VolumeHealth = old.VolumeHealth
	}
	normalizeInPlace(p, &now)
	return now
}

// keepTerminal keeps a terminal phase, whatever status is derived later: controllers have acted on it.
func keepTerminal(old, now *v1.PodStatus) {
	if pod.IsTerminal(old.Phase) && now.Phase != old.Phase {
		now.Phase, now.Reason, now.Message = old.Phase, old.Reason, old.Message
	}
	if !pod.IsTerminal(now.Phase) {
		return
	}
	reason := "PodCompleted"
	if now.Phase == v1.PodFailed {
		reason = "PodFailed"
	}
	for i := range now.Conditions {
		c := &now.Conditions[i]
		if (c.Type == v1.PodReady || c.Type == v1.ContainersReady) && c.Status == v1.ConditionTrue {
			c.Status, c.Reason, c.Message = v1.ConditionFalse, reason, ""
		}
	}
}

// delayTerminal keeps the previous phase of a pod that ends while one of its containers runs, because
// controllers may replace a pod with a terminal phase. It has nothing to delay if the API server has
// such a phase already, because another component wrote it.
func delayTerminal(p *v1.Pod, old, now *v1.PodStatus) {
	if pod.IsTerminal(old.Phase) || pod.IsTerminal(p.Status.Phase) || !pod.IsTerminal(now.Phase) || !anyRunning(now) {
		return
	}
	now.Phase, now.Reason, now.Message = old.Phase, old.Reason, old.Message
	now.Conditions = slices.DeleteFunc(slices.Clone(now.Conditions), func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget
	})
}

func anyRunning(s *v1.PodStatus) bool {
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for _, c := range list {
			if c.State.Running != nil {
				return true
			}
		}
	}
	return false
}

// mergeConditions puts the conditions of other components before those of the kubelet.
func mergeConditions(p, object *v1.Pod, old *v1.PodStatus, now []v1.PodCondition) []v1.PodCondition {
	foreign := p.Status.Conditions
	if object != nil {
		foreign = object.Status.Conditions
	}
	var all []v1.PodCondition
	for _, c := range foreign {
		if !isOwned(c.Type) || (c.Type == v1.DisruptionTarget && find(now, c.Type) == nil) {
			all = append(all, c)
		}
	}
	// DisruptionTarget is never removed.
	if c := find(old.Conditions, v1.DisruptionTarget); c != nil && find(now, c.Type) == nil && find(all, c.Type) == nil {
		all = append(all, *c)
	}
	for _, c := range now {
		if isOwned(c.Type) {
			all = append(all, c)
		}
	}
	return all
}

// setTransitionTimes sets the times at which the status of conditions last changed; changes of reason
// and message do not count.
func setTransitionTimes(object *v1.Pod, old, now []v1.PodCondition, at time.Time) {
	for i := range now {
		c := &now[i]
		if !isOwned(c.Type) {
			continue
		}
		before := find(old, c.Type)
		if before == nil && c.Type == v1.DisruptionTarget && object != nil {
			before = find(object.Status.Conditions, c.Type) // another component set it first
		}
		if before != nil && before.Status == c.Status && !before.LastTransitionTime.IsZero() {
			c.LastTransitionTime = before.LastTransitionTime
		} else {
			c.LastTransitionTime = metav1.Time{Time: at}
		}
	}
}

func find(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	i := slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
