package runtime

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Stop stops containers of a pod, and then its sandboxes with their network. It returns when
// all have ended.
func (r *Runtime) Stop(ctx context.Context, p *v1.Pod, what Parts, how Stop) error {
	stop := r.stopSideBySide
	if how.PodEnds {
		stop = r.stopInOrder
	}
	if err := stop(ctx, p, what.Containers, how); err != nil {
		return fmt.Errorf("stop containers: %w", err)
	}
	// A sandbox that died keeps its address until it is stopped.
	left := slices.DeleteFunc(slices.Clone(what.Sandboxes), func(b pod.Sandbox) bool { return !b.Ready && len(b.IPs) == 0 })
	if err := sideBySide(left, func(b *pod.Sandbox) error { return r.deps.CRI.StopPodSandbox(ctx, b.ID) }); err != nil {
		return fmt.Errorf("stop sandboxes: %w", err)
	}
	return nil
}

// stopSideBySide stops containers of a pod that goes on.
func (r *Runtime) stopSideBySide(ctx context.Context, p *v1.Pod, containers []pod.Container, how Stop) error {
	return sideBySide(containers, func(c *pod.Container) error { return r.stopContainer(ctx, p, c, how) })
}
