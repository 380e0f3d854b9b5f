package cgroup

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// None stands in for a Tree, to those who keep pods in it, on a node where neither classes
// nor pods have groups of their own. The runtime, which is told of no parent, puts containers
// where it puts those of nobody. Groups that were made before are left alone.
type None struct{}

func (None) EnsurePod(*v1.Pod) error                    { return nil }
func (None) PodParent(*v1.Pod) string                   { return "" }
func (None) RemovePod(context.Context, types.UID) error { return nil }
func (None) Pods() ([]types.UID, error)                 { return nil, nil }

// PodMemory is 0: a pod without a group has no bounds to hold it against.
func (None) PodMemory(*v1.Pod) (uint64, error) { return 0, nil }

// Kubepods is empty: there is no cgroup of all pods.
func (None) Kubepods() string { return "" }
