package podsync

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// Resources are the devices and resource claims of pods.
type Resources interface {
	// Prepare allocates devices and prepares claims before the pod starts.
	Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error
	// ContainerOptions returns what a container that is about to be created needs for its devices and claims.
	ContainerOptions(ctx context.Context, p *v1.Pod, c *v1.Container) (runtime.ContainerOptions, error)
	// Release releases the resources of a pod whose containers have all stopped.
	Release(ctx context.Context, ref pod.Ref) error
	// Health returns the health of a container's resources.
	Health(p *v1.Pod, container string) []v1.ResourceStatus
}

// noResources is Resources on a node without any.
type noResources struct{}

func (noResources) Prepare(context.Context, *v1.Pod, *pod.Observed) error { return nil }
func (noResources) ContainerOptions(context.Context, *v1.Pod, *v1.Container) (runtime.ContainerOptions, error) {
	return runtime.ContainerOptions{}, nil
}
func (noResources) Release(context.Context, pod.Ref) error     { return nil }
func (noResources) Health(*v1.Pod, string) []v1.ResourceStatus { return nil }
