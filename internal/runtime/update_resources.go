package runtime

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// UpdateResources sets the resources of a running container to those of its spec. Where c is
// nil, id is the pod's sandbox, and the runtime gets the resources of the whole pod, by which it
// can resize a virtual machine.
func (r *Runtime) UpdateResources(ctx context.Context, p *v1.Pod, c *v1.Container, id string) error {
	if c == nil {
		return r.deps.CRI.UpdatePodSandboxResources(ctx, id, r.overhead(p), r.sandboxResources(p))
	}
	return r.deps.CRI.UpdateContainerResources(ctx, id, r.ContainerResources(p, c))
}
