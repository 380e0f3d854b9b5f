package podsync

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/contain"
	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// causes maps kill reasons to the probe that failed, which may have its own grace period.
var causes = map[plan.KillReason]runtime.StopCause{plan.Liveness: runtime.StopLiveness, plan.Startup: runtime.StopStartup}

// kill stops the containers of the plan in parallel.
func (s *Steps) kill(ctx context.Context, p *v1.Pod, kills []plan.Kill, podIPs []string) error {
	return inParallel(kills, func(k plan.Kill) error {
		only := runtime.Targets{Containers: []pod.Container{k.Container}}
		return s.deps.Runtime.Stop(ctx, p, only, runtime.StopOptions{Cause: causes[k.Reason], Message: killMessage(k), PodIPs: podIPs})
	})
}

// killMessage returns the message of the Killing event.
func killMessage(k plan.Kill) string {
	what, end := "Container", ""
	if k.Restart {
		end = ", will be restarted"
	}
	if k.Kind == pod.Init { // sidecars always restart
		what, end = "Init container", ""
	}
	switch k.Reason {
	case plan.Liveness:
		return what + " " + k.Container.Name + " failed liveness probe" + end
	case plan.Startup:
		return what + " " + k.Container.Name + " failed startup probe" + end
	case plan.Changed:
		return what + " " + k.Container.Name + " definition changed" + end
	case plan.Resized:
		return "Container " + k.Container.Name + " resize requires restart"
	case plan.UnknownState:
		return what + ` is in "unknown" state, try killing it before restart`
	}
	return "" // the default
}

// inParallel calls f for all items at the same time and waits for all calls.
func inParallel[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = contain.Call(func() error { return f(item) }) })
	}
	all.Wait()
	return errors.Join(errs...)
}
