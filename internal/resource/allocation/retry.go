package allocation

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// Triggers of a resize attempt: values of a metric's label.
const (
	TriggerAdded    = "pods_added"
	TriggerUpdated  = "pod_updated"
	TriggerPeriodic = "periodic_retry"
)

// TriggerOf returns the trigger for deferred resizes after these changes.
func TriggerOf(changes []pod.Change) string {
	has := func(is func(pod.Change) bool) bool { return slices.ContainsFunc(changes, is) }
	switch {
	case has(func(c pod.Change) bool { return c.Op == pod.Remove }):
		return "pods_removed"
	case has(func(c pod.Change) bool { return pod.IsTerminal(c.Pod.Status.Phase) }):
		return "pod_terminated"
	case has(func(c pod.Change) bool { return c.Op == pod.Update }):
		return TriggerUpdated
	case has(func(c pod.Change) bool { return c.Op == pod.Add }):
		return TriggerAdded
	}
	return "pod_resized"
}

// Retry retries the deferred resizes of desired pods one after the other, and passes those with a
// changed result to handle. After handle has returned, active must reflect the result.
func (a *Allocator) Retry(desired func(types.UID) (*v1.Pod, bool), active func() []*v1.Pod, trigger string, handle func(pod.Change)) {
	var waiting []*v1.Pod
	for _, uid := range a.Deferred() {
		if p, found := desired(uid); found && p.DeletionTimestamp == nil {
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, a.compare)
	for _, p := range waiting {
		allocated, resize, changed := a.Resize(p, active, trigger)
		if changed {
			handle(pod.Change{Op: pod.Update, Pod: allocated, Resize: resize})
		}
	}
}

// compare orders deferred resizes: first those that request no more than the allocation, then by
// priority, then Guaranteed pods, then by the time since they were deferred.
func (a *Allocator) compare(p, q *v1.Pod) int {
	return cmp.Or(
		cmp.Compare(a.requestsMore(p), a.requestsMore(q)),
		cmp.Compare(priority(q), priority(p)),
		cmp.Compare(notGuaranteed(p), notGuaranteed(q)),
		cmp.Compare(deferredSince(p), deferredSince(q)),
	)
}

// requestsMore is 1 for a pod that requests more than its allocation.
func (a *Allocator) requestsMore(p *v1.Pod) int {
	allocated, _ := a.Allocated(p)
	have := resourcehelper.PodRequests(allocated, resourcehelper.PodResourcesOptions{})
	want := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	if want.Cpu().Cmp(*have.Cpu()) > 0 || want.Memory().Cmp(*have.Memory()) > 0 {
		return 1
	}
	return 0
}

func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

func notGuaranteed(p *v1.Pod) int {
	if pod.QOS(p) == v1.PodQOSGuaranteed {
		return 0
	}
	return 1
}

// deferredSince returns the transition time of the pod's PodResizePending condition; a pod without
// it comes last.
func deferredSince(p *v1.Pod) int64 {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodResizePending {
			return c.LastTransitionTime.UnixNano()
		}
	}
	return 1<<63 - 1
}
