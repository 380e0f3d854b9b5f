package podsync

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/contain"
	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume"
	"swiftlet/internal/why"
)

// parallelCreations is how many containers of a pod are created at the same time. The configuration of each may
// have megabytes of variables, and a pod thousands of containers.
const parallelCreations = 8

// attempt is one attempt to start a pod's containers. Sandbox, volumes and images proceed at the
// same time; each container waits for them when it needs them.
type attempt struct {
	*PodSteps
	p        *v1.Pod
	observed *pod.Observed

	prepared *runtime.Sandbox // the sandbox's configuration, before and after it is created
	sandbox  func() (sandbox, error)
	volumes  func() (map[string]volume.Mounted, error)
	// slots has one entry for each container that is being created.
	slots chan struct{}
	// checkpointed waits until the pod's resources are on disk.
	checkpointed func() (struct{}, error)
	// imageVolumes are the images of image volumes, by volume.
	imageVolumes map[string]func() imageVolume
}

// sandbox is what containers need of their sandbox.
type sandbox struct {
	id  string
	ips []string
}

// start starts the containers of a plan. It returns those that failed to start; an error is one
// of the whole pod.
func (s *PodSteps) start(ctx context.Context, p *v1.Pod, observed *pod.Observed, actions plan.Actions) (failed map[string]bool, err error) {
	if len(actions.Start) == 0 {
		return nil, nil
	}
	if err := s.deps.Node.Network(); err != nil && !p.Spec.HostNetwork {
		s.record(p, why.Network, err)
		s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "NetworkNotReady", "network is not ready: %v", err)
		return nil, fmt.Errorf("network is not ready: %w", err)
	}
	s.deps.Why.Passed(p.UID, why.Step{Kind: why.Network}, s.deps.Clock.Now())
	if err := s.timed(p, why.Resources, func() error { return s.prepareResources(ctx, p, observed, actions.Start) }); err != nil {
		return nil, fmt.Errorf("prepare resources of pod: %w", err)
	}
	if err := s.timed(p, why.Cgroup, func() error { return s.deps.Cgroups.EnsurePod(p) }); err != nil {
		s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "FailedCreatePodContainer", "unable to ensure pod container exists: %v", err)
		return nil, fmt.Errorf("ensure cgroup of pod: %w", err)
	}
	if actions.NewSandbox {
		s.recordNewSandbox(p)
		defer func() { s.deps.Meters.began(p, err != nil || len(failed) > 0) }()
	}
	prepared, err := s.deps.Runtime.PrepareSandbox(ctx, runtime.SandboxRequest{
		Pod: p, Attempt: actions.Attempt, CgroupParent: s.deps.Cgroups.PodParent(p), Handler: s.deps.Node.Handler, New: actions.NewSandbox,
	})
	if err != nil {
		s.record(p, why.Sandbox, err)
		return nil, err
	}
	a := &attempt{PodSteps: s, p: p, observed: observed, prepared: prepared, slots: make(chan struct{}, parallelCreations)}
	a.checkpointed = inBackground(func() (struct{}, error) { return struct{}{}, s.checkpoint(ctx, p) })
	a.volumes = inBackground(func() (map[string]volume.Mounted, error) { return s.deps.Volumes.Mount(ctx, p) })
	a.sandbox = inBackground(func() (sandbox, error) { return a.makeSandbox(ctx, actions) })
	a.imageVolumes = a.pullImageVolumes(ctx)
	defer func() { // the step must not return before its goroutines
		_, _ = a.sandbox()
		_, _ = a.volumes()
		_, _ = a.checkpointed()
		for _, pulled := range a.imageVolumes {
			pulled()
		}
	}()
	return a.startAll(ctx, actions.Start)
}

// inBackground calls f in a goroutine and returns a function that waits for its result.
func inBackground[T any](f func() (T, error)) func() (T, error) {
	var result T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err = contain.Value(f)
	}()
	return func() (T, error) {
		<-done
		return result, err
	}
}
