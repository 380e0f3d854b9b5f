package runtime

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Stop stops containers of a pod, and then sandboxes with their network. It returns when all
// have stopped.
func (r *Runtime) Stop(ctx context.Context, p *v1.Pod, what Targets, how StopOptions) error {
	if how.PodEnds {
		return r.stopPod(ctx, p, what, how)
	}
	if err := r.stopInParallel(ctx, p, what.Containers, how); err != nil {
		return fmt.Errorf("stop containers: %w", err)
	}
	if err := r.stopSandboxes(ctx, what.Sandboxes); err != nil {
		return fmt.Errorf("stop sandboxes: %w", err)
	}
	return nil
}

func (r *Runtime) stopSandboxes(ctx context.Context, sandboxes []pod.Sandbox) error {
	// A sandbox that died keeps its IP until it is stopped.
	left := slices.DeleteFunc(slices.Clone(sandboxes), func(b pod.Sandbox) bool { return !b.Ready && len(b.IPs) == 0 })
	return inParallel(left, func(b *pod.Sandbox) error { return r.deps.CRI.StopPodSandbox(ctx, b.ID) })
}

// stopInParallel stops containers of a pod that does not terminate.
func (r *Runtime) stopInParallel(ctx context.Context, p *v1.Pod, containers []pod.Container, how StopOptions) error {
	return inParallel(containers, func(c *pod.Container) error { return r.stopContainer(ctx, p, c, how) })
}
