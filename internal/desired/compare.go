package desired

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"swiftlet/internal/pod"
)

// compare returns the operation for a newer version of the same pod. A change that the node acts on wins
// over a change of status, because handling it publishes the status anyway. Equal resource versions do
// not mean equal pods: after a restore of etcd they are assigned again.
func compare(old, now *v1.Pod) (op pod.Op, changed bool) {
	switch {
	case differs(old, now) && now.DeletionTimestamp != nil:
		return pod.Delete, true
	case differs(old, now):
		return pod.Update, true
	case !equality.Semantic.DeepEqual(old.Status, now.Status):
		return pod.Reconcile, true
	}
	return 0, false
}

// differs compares the fields that the node acts on, or that are visible in the pod.
func differs(old, now *v1.Pod) bool {
	return !old.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(old.DeletionGracePeriodSeconds, now.DeletionGracePeriodSeconds) ||
		!maps.Equal(old.Labels, now.Labels) ||
		!maps.Equal(old.Annotations, now.Annotations) ||
		old.Generation != now.Generation ||
		!equality.Semantic.DeepEqual(old.Spec, now.Spec)
}
