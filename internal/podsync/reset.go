package podsync

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// reset removes containers that are to be restarted. It kills running ones without a grace
// period, then removes all one by one: by their order a later attempt knows how far this one got.
// It keeps their logs.
func (s *Steps) reset(ctx context.Context, p *v1.Pod, containers []pod.Container) error {
	live := slices.DeleteFunc(slices.Clone(containers), func(c pod.Container) bool { return c.State == pod.Exited || c.State == pod.Created })
	noGrace := int64(0)
	if err := s.deps.Runtime.Stop(ctx, p, runtime.Targets{Containers: live}, runtime.StopOptions{Message: "killing", Grace: &noGrace}); err != nil {
		return fmt.Errorf("kill containers to restart them: %w", err)
	}
	for _, c := range containers {
		only := runtime.Targets{Containers: []pod.Container{c}}
		if err := s.deps.Runtime.Remove(ctx, pod.RefOf(p), only, runtime.KeepLogs); err != nil {
			return fmt.Errorf("remove container %s to restart it: %w", c.Name, err)
		}
	}
	return nil
}
