package podsync

import (
	"context"
	"errors"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/plan"
	"swiftlet/internal/runtime"
)

// killed says, for each reason, what the user is told about a container that is stopped.
var killed = map[plan.KillReason]struct {
	message string
	cause   runtime.StopCause
}{
	plan.Liveness:  {"Container %s failed liveness probe", runtime.StopLiveness},
	plan.Startup:   {"Container %s failed startup probe", runtime.StopStartup},
	plan.Changed:   {"Container %s definition changed", runtime.StopPlain},
	plan.NoSandbox: {"Stopping container %s", runtime.StopPlain},
}

// kill stops the planned containers side by side.
func (s *Steps) kill(ctx context.Context, p *v1.Pod, kills []plan.Kill, podIPs []string) error {
	return together(kills, func(k plan.Kill) error {
		why := killed[k.Reason]
		message := fmt.Sprintf(why.message, k.Container.Name)
		if k.Restart {
			message += ", will be restarted"
		}
		return s.deps.Runtime.StopContainer(ctx, p, &k.Container, runtime.Stop{Cause: why.cause, Message: message, PodIPs: podIPs})
	})
}

// together calls f for all items at the same time and waits for all of them.
func together[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = f(item) })
	}
	all.Wait()
	return errors.Join(errs...)
}
