package podsync

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume"
)

// attempt is one round of bringing a pod's containers up. Sandbox, volumes and images
// proceed at the same time; each container joins them when it needs them.
type attempt struct {
	*PodSteps
	p        *v1.Pod
	observed *pod.Observed

	prepared *runtime.Sandbox // what the sandbox is, before and after it exists
	sandbox  func() (sandbox, error)
	volumes  func() (map[string]volume.Mounted, error)
	kept     func() (struct{}, error) // the pod's resources are written down
	// imageVolumes are the images that volumes name, by volume.
	imageVolumes map[string]func() imageVolume
}

// sandbox is what containers need to know of theirs.
type sandbox struct {
	id  string
	ips []string
}

// start starts what a plan wants started. It returns the containers that could not be; an
// error concerns the pod as a whole.
func (s *PodSteps) start(ctx context.Context, p *v1.Pod, observed *pod.Observed, actions plan.Actions) (failed map[string]bool, err error) {
	if len(actions.Start) == 0 {
		return nil, nil
	}
	if err := s.deps.Node.Network(); err != nil && !p.Spec.HostNetwork {
		s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "NetworkNotReady", "network is not ready: %v", err)
		return nil, fmt.Errorf("network is not ready: %w", err)
	}
	if err := s.deps.Resources.Prepare(ctx, p, observed); err != nil {
		return nil, fmt.Errorf("prepare the pod's resources: %w", err)
	}
	if err := s.deps.Cgroups.EnsurePod(p); err != nil {
		s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "FailedToCreatePodContainer", "unable to ensure pod container exists: %v", err)
		return nil, fmt.Errorf("ensure the pod's cgroup: %w", err)
	}
	if actions.NewSandbox {
		s.beginAnew(p)
		defer func() { s.deps.Meters.began(p, err != nil || len(failed) > 0) }()
	}
	prepared, err := s.deps.Runtime.PrepareSandbox(ctx, runtime.SandboxRequest{
		Pod: p, Attempt: actions.Attempt, CgroupParent: s.deps.Cgroups.PodParent(p), Handler: s.deps.Node.Handler, New: actions.NewSandbox,
	})
	if err != nil {
		return nil, err
	}
	a := &attempt{PodSteps: s, p: p, observed: observed, prepared: prepared}
	a.kept = inBackground(func() (struct{}, error) { return struct{}{}, s.keep(ctx, p) })
	a.volumes = inBackground(func() (map[string]volume.Mounted, error) { return s.deps.Volumes.Mount(ctx, p) })
	a.sandbox = inBackground(func() (sandbox, error) { return a.makeSandbox(ctx, actions) })
	a.imageVolumes = a.fetchImageVolumes(ctx)
	defer func() { // whatever is under way belongs to this pod's step
		_, _ = a.sandbox()
		_, _ = a.volumes()
		_, _ = a.kept()
		for _, fetched := range a.imageVolumes {
			fetched()
		}
	}()
	return a.startAll(ctx, actions.Start)
}

// inBackground starts f now; what it returns waits for f's result.
func inBackground[T any](f func() (T, error)) func() (T, error) {
	var result T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err = f()
	}()
	return func() (T, error) {
		<-done
		return result, err
	}
}
