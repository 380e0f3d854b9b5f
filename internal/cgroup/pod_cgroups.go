package cgroup

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodCgroups creates and removes the cgroups of pods.
type PodCgroups interface {
	EnsurePod(*v1.Pod) error
	PodParent(*v1.Pod) string
	RemovePod(context.Context, types.UID) error
	Pods() ([]types.UID, error)
	PodMemoryUsage(*v1.Pod) (uint64, error)
	// Kubepods is the cgroup of all pods, "" where they have none.
	Kubepods() string
}

// NewPodCgroups returns the tree, which also updates the QoS classes with every pod. Without
// perQOS (cgroupsPerQOS) it returns one that creates no cgroups. active lists the pods whose
// requests count towards the limits of their class.
func NewPodCgroups(perQOS bool, tree *Tree, active func() []*v1.Pod) PodCgroups {
	if !perQOS {
		return noPodCgroups{}
	}
	return qosPodCgroups{Tree: tree, active: active}
}

// qosPodCgroups updates the limits of the QoS classes when pods come and go.
type qosPodCgroups struct {
	*Tree
	active func() []*v1.Pod
}

func (q qosPodCgroups) EnsurePod(p *v1.Pod) error {
	return errors.Join(q.UpdateQOS(q.active()), q.Tree.EnsurePod(p))
}

func (q qosPodCgroups) RemovePod(ctx context.Context, uid types.UID) error {
	if err := q.Tree.RemovePod(ctx, uid); err != nil {
		return err
	}
	return q.UpdateQOS(q.active())
}

// noPodCgroups is for a node where neither pods nor QoS classes have cgroups. The runtime gets no
// cgroup parent and chooses one itself. Cgroups that an earlier kubelet created are not removed.
type noPodCgroups struct{}

func (noPodCgroups) EnsurePod(*v1.Pod) error                    { return nil }
func (noPodCgroups) PodParent(*v1.Pod) string                   { return "" }
func (noPodCgroups) RemovePod(context.Context, types.UID) error { return nil }
func (noPodCgroups) Pods() ([]types.UID, error)                 { return nil, nil }

// PodMemoryUsage is 0: a pod without a cgroup has no limit to compare it with.
func (noPodCgroups) PodMemoryUsage(*v1.Pod) (uint64, error) { return 0, nil }

func (noPodCgroups) Kubepods() string { return "" }
