package pod

import v1 "k8s.io/api/core/v1"

// Snapshot is the complete list of one source's pods for this node. A pod that is not in it has been
// removed from that source.
type Snapshot struct {
	Source Source
	Pods   []*v1.Pod
	// Listed: the source has listed the pods since its last snapshot, not only watched them. Earlier
	// resource versions cannot be compared with these.
	Listed bool
	// Partial: these are pods of the source that are known without it. The source may have others, so
	// that no pod that is missing here was removed from it.
	Partial bool
}

// Op is the kind of a Change.
type Op int

const (
	// Add: the pod is new.
	Add Op = iota
	// Update: its spec, labels or annotations changed.
	Update
	// Delete: its deletion timestamp is set; it must stop within its grace period.
	Delete
	// Remove: it is in no source any more.
	Remove
	// Reconcile: only its status in the API server, or its mirror, changed.
	Reconcile
)

func (o Op) String() string {
	return [...]string{"add", "update", "delete", "remove", "reconcile"}[o]
}

// Change is one change of the desired state. Changes are handled in order.
type Change struct {
	Op Op
	// Pod is the pod to run, never a mirror. For Remove it is the last version.
	Pod *v1.Pod
	// Mirror is the mirror of a static pod, nil if there is none.
	Mirror *v1.Pod
	// Resize is the state of its resize. Pod has the allocated resources.
	Resize Resize
}
