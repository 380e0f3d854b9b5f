package runtime

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// UpdateContainer has a running container take the resources of its spec.
func (r *Runtime) UpdateContainer(ctx context.Context, p *v1.Pod, c *v1.Container, id string) error {
	return r.deps.CRI.UpdateContainerResources(ctx, id, r.ContainerResources(p, c))
}

// UpdateSandbox tells the runtime which resources the pod as a whole will have. A sandbox
// that is a machine is sized by them.
func (r *Runtime) UpdateSandbox(ctx context.Context, p *v1.Pod, id string) error {
	return r.deps.CRI.UpdatePodSandboxResources(ctx, id, r.overhead(p), r.sandboxResources(p))
}
