package status

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

// owned are the conditions that the kubelet alone writes.
var owned = []v1.PodConditionType{
	v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
	v1.PodResizeInProgress, v1.PodResizePending, v1.AllContainersRestarting,
}

// isOurs also counts DisruptionTarget, which the kubelet may set but others may have set.
func isOurs(t v1.PodConditionType) bool {
	return t == v1.DisruptionTarget || slices.Contains(owned, t)
}

// merge completes a newly computed status from what was last known: others' conditions,
// transition times, the start time. image is the API server's object, nil for none.
func merge(p, image *v1.Pod, old, now v1.PodStatus, at time.Time) v1.PodStatus {
	holdTerminal(&old, &now)
	keepTerminal(&old, &now)
	stampTransitions(image, old.Conditions, now.Conditions, at)
	now.Conditions = mergeConditions(p, image, &old, now.Conditions)
	switch {
	case !old.StartTime.IsZero():
		now.StartTime = old.StartTime.DeepCopy()
	case now.StartTime.IsZero():
		now.StartTime = &metav1.Time{Time: at}
	}
	now.ObservedGeneration = max(p.Generation, old.ObservedGeneration)
	if image != nil {
		// It goes back with the API server's, not with what is remembered here.
		now.ObservedGeneration = max(p.Generation, image.Status.ObservedGeneration)
		now.NominatedNodeName = image.Status.NominatedNodeName
		now.ResourceClaimStatuses = image.Status.ResourceClaimStatuses
		now.ExtendedResourceClaimStatus = image.Status.ExtendedResourceClaimStatus
		now.NodeAllocatableResourceClaimStatuses = image.Status.NodeAllocatableResourceClaimStatuses
	}
	if now.QOSClass == "" {
		now.QOSClass = old.QOSClass
	}
	if now.VolumeHealth == nil { // not looked at; none that are ill are an empty list
		now.VolumeHealth = old.VolumeHealth
	}
	return normalize(p, now)
}

// keepTerminal: a pod that has ended has ended, whatever is computed of it later; others
// have acted on it.
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

// holdTerminal: a pod is not said to have ended while one of its containers runs, since
// whoever reads that may give its resources or its identity to another pod.
func holdTerminal(old, now *v1.PodStatus) {
	if pod.IsTerminal(old.Phase) || !pod.IsTerminal(now.Phase) || !anyRunning(now) {
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

// mergeConditions puts the conditions of others, as last seen, before ours.
func mergeConditions(p, image *v1.Pod, old *v1.PodStatus, now []v1.PodCondition) []v1.PodCondition {
	foreign := p.Status.Conditions
	if image != nil {
		foreign = image.Status.Conditions
	}
	var all []v1.PodCondition
	for _, c := range foreign {
		if !isOurs(c.Type) || (c.Type == v1.DisruptionTarget && find(now, c.Type) == nil) {
			all = append(all, c)
		}
	}
	// A disruption that was announced is not taken back.
	if c := find(old.Conditions, v1.DisruptionTarget); c != nil && find(now, c.Type) == nil && find(all, c.Type) == nil {
		all = append(all, *c)
	}
	for _, c := range now {
		if isOurs(c.Type) {
			all = append(all, c)
		}
	}
	return all
}

// stampTransitions: the time is that of the last change of status, not of reason or message.
func stampTransitions(image *v1.Pod, old, now []v1.PodCondition, at time.Time) {
	for i := range now {
		c := &now[i]
		if !isOurs(c.Type) {
			continue
		}
		before := find(old, c.Type)
		if before == nil && c.Type == v1.DisruptionTarget && image != nil {
			before = find(image.Status.Conditions, c.Type) // someone else announced it first
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
