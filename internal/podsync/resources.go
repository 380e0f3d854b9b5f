package podsync

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// Resources has what others on the node give out: devices and claims.
type Resources interface {
	// Prepare makes ready what the pod was promised, before anything of it starts.
	Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error
	// Extras are what a container needs to use its part; it is about to be created.
	Extras(ctx context.Context, p *v1.Pod, c *v1.Container) (runtime.Extras, error)
	// Release takes all back from a pod of which nothing runs any more.
	Release(ctx context.Context, ref pod.Ref) error
	// Health says how what a container has is doing.
	Health(p *v1.Pod, container string) []v1.ResourceStatus
}

// nothing stands for Resources that are not there.
type nothing struct{}

func (nothing) Prepare(context.Context, *v1.Pod, *pod.Observed) error { return nil }
func (nothing) Extras(context.Context, *v1.Pod, *v1.Container) (runtime.Extras, error) {
	return runtime.Extras{}, nil
}
func (nothing) Release(context.Context, pod.Ref) error     { return nil }
func (nothing) Health(*v1.Pod, string) []v1.ResourceStatus { return nil }
