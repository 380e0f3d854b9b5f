package cgroup

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodGroups are the cgroups that pods have of their own.
type PodGroups interface {
	EnsurePod(*v1.Pod) error
	PodParent(*v1.Pod) string
	RemovePod(context.Context, types.UID) error
	Pods() ([]types.UID, error)
	PodMemory(*v1.Pod) (uint64, error)
	// Kubepods is the cgroup of all pods, "" where they have none.
	Kubepods() string
}

// ForPods is the tree where pods and QoS classes have cgroups of their own (cgroupsPerQOS),
// and None otherwise. active lists the pods that count towards the shares of their class.
func ForPods(perQOS bool, tree *Tree, active func() []*v1.Pod) PodGroups {
	if !perQOS {
		return None{}
	}
	return QOSPods{Tree: tree, Active: active}
}

// QOSPods keeps the shares of the QoS classes in step with the pods in them.
type QOSPods struct {
	*Tree
	// Active lists the pods that count.
	Active func() []*v1.Pod
}

// EnsurePod creates the pod's cgroup, or updates it.
func (q QOSPods) EnsurePod(p *v1.Pod) error {
	return errors.Join(q.UpdateQOS(q.Active()), q.Tree.EnsurePod(p))
}

// RemovePod removes the pod's cgroup with all that runs in it.
func (q QOSPods) RemovePod(ctx context.Context, uid types.UID) error {
	if err := q.Tree.RemovePod(ctx, uid); err != nil {
		return err
	}
	return q.UpdateQOS(q.Active())
}
