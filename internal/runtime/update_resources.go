package runtime

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// UpdateResources gives a running container the resources of its spec. Where c is nil, id is
// the pod's sandbox: the runtime learns which resources the pod as a whole will have, and
// sizes a sandbox that is a machine by them.
func (r *Runtime) UpdateResources(ctx context.Context, p *v1.Pod, c *v1.Container, id string) error {
	if c == nil {
		return r.deps.CRI.UpdatePodSandboxResources(ctx, id, r.overhead(p), r.sandboxResources(p))
	}
	return r.deps.CRI.UpdateContainerResources(ctx, id, r.ContainerResources(p, c))
}
