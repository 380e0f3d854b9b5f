package runtime

import (
	"context"
	"fmt"

	"swiftlet/internal/pod"
)

// Logs says whether Remove deletes the logs of containers.
type Logs bool

const (
	DeleteLogs Logs = false
	// KeepLogs is for instances that are removed to be restarted, not because they are garbage.
	// Their logs stay until the pod is removed.
	KeepLogs Logs = true
)

// Remove removes containers that have exited, and then sandboxes with all their containers.
func (r *Runtime) Remove(ctx context.Context, ref pod.Ref, what Targets, logs Logs) error {
	err := inParallel(what.Containers, func(c *pod.Container) error {
		if logs == KeepLogs {
			return r.deps.CRI.RemoveContainer(ctx, c.ID)
		}
		return r.removeContainer(ctx, ref, c)
	})
	if err != nil {
		return fmt.Errorf("remove containers: %w", err)
	}
	if err := inParallel(what.Sandboxes, func(b *pod.Sandbox) error { return r.removeSandbox(ctx, b.ID) }); err != nil {
		return fmt.Errorf("remove sandboxes: %w", err)
	}
	return nil
}
