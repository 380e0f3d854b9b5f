package runtime

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// UpdateResources sets the resources of a running container to those of its spec. Where c is
// nil, id is the pod's sandbox, and the runtime gets the resources of the whole pod, by which it
// can resize a virtual machine.
func (r *Runtime) UpdateResources(ctx context.Context, p *v1.Pod, c *v1.Container, id string) error {
	if c == nil {
		return r.deps.CRI.UpdatePodSandboxResources(ctx, id, r.overhead(p), r.sandboxResources(p))
	}
	return r.deps.CRI.UpdateContainerResources(ctx, id, r.ContainerResources(p, withCPURequest(c)))
}

// withCPURequest returns the container with a CPU request, zero if it has none. The reference kubelet gives
// a container without a request the weight of its limit when it starts, and the least when it is resized.
func withCPURequest(c *v1.Container) *v1.Container {
	if _, ok := c.Resources.Requests[v1.ResourceCPU]; ok {
		return c
	}
	c = c.DeepCopy()
	if c.Resources.Requests == nil {
		c.Resources.Requests = v1.ResourceList{}
	}
	c.Resources.Requests[v1.ResourceCPU] = resource.Quantity{}
	return c
}
