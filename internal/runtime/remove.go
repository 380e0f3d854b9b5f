package runtime

import (
	"context"
	"fmt"

	"swiftlet/internal/pod"
)

// Logs says what becomes of the logs of containers that are removed.
type Logs bool

const (
	DeleteLogs Logs = false
	// KeepLogs is for containers that will run again, of which the run that is removed came
	// to no end of its own. The logs stay until the pod goes.
	KeepLogs Logs = true
)

// Remove removes containers that have ended, and then sandboxes with all that is in them.
func (r *Runtime) Remove(ctx context.Context, ref pod.Ref, what Parts, logs Logs) error {
	err := sideBySide(what.Containers, func(c *pod.Container) error {
		if logs == KeepLogs {
			return r.deps.CRI.RemoveContainer(ctx, c.ID)
		}
		return r.removeContainer(ctx, ref, c)
	})
	if err != nil {
		return fmt.Errorf("remove containers: %w", err)
	}
	if err := sideBySide(what.Sandboxes, func(b *pod.Sandbox) error { return r.removeSandbox(ctx, b.ID) }); err != nil {
		return fmt.Errorf("remove sandboxes: %w", err)
	}
	return nil
}
