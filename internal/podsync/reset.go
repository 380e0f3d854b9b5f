package podsync

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// reset removes containers so that they can run again. Those that run are killed without
// grace; then all are removed one by one, because their order says how far this got. Their
// logs stay.
func (s *Steps) reset(ctx context.Context, p *v1.Pod, containers []pod.Container) error {
	live := slices.DeleteFunc(slices.Clone(containers), func(c pod.Container) bool { return c.State == pod.Exited || c.State == pod.Created })
	atOnce := int64(0)
	if err := s.deps.Runtime.Stop(ctx, p, runtime.Targets{Containers: live}, runtime.StopOptions{Message: "killing", Grace: &atOnce}); err != nil {
		return fmt.Errorf("kill containers to run them again: %w", err)
	}
	for _, c := range containers {
		only := runtime.Targets{Containers: []pod.Container{c}}
		if err := s.deps.Runtime.Remove(ctx, pod.RefOf(p), only, runtime.KeepLogs); err != nil {
			return fmt.Errorf("remove container %s to run it again: %w", c.Name, err)
		}
	}
	return nil
}
