package pod

import v1 "k8s.io/api/core/v1"

// Snapshot is everything one source wants on this node, at one moment. A pod that is
// missing from it is no longer wanted by that source.
type Snapshot struct {
	Source Source
	Pods   []*v1.Pod
	// Listed: the source has read the pods as a whole since its last snapshot, not only
	// followed their changes. Resource versions from before say nothing about these.
	Listed bool
}

// Op says what became of a wanted pod.
type Op int

const (
	// Add: the pod was not wanted before.
	Add Op = iota
	// Update: its spec, labels or annotations changed.
	Update
	// Delete: its deletion timestamp is set; it must stop within its grace period.
	Delete
	// Remove: no source wants it any more.
	Remove
	// Reconcile: nothing changed but what others see of it (its status in the API server,
	// or its mirror): it is to be looked at again, not acted on anew.
	Reconcile
)

func (o Op) String() string {
	return [...]string{"add", "update", "delete", "remove", "reconcile"}[o]
}

// Change is one step in what is wanted. Changes are handled in the order they are given.
type Change struct {
	Op Op
	// Pod is the pod to run, never a mirror. For Remove it is the last known form.
	Pod *v1.Pod
	// Mirror is the API server's image of a static pod, nil where there is none (yet).
	Mirror *v1.Pod
	// Resize is how far a change of its resources has come. Pod has those that it was given.
	Resize Resize
}
