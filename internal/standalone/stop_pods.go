package standalone

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

const (
	// annotationGrace is the container annotation with the pod's grace period, in seconds.
	annotationGrace = "io.kubernetes.pod.terminationGracePeriod"
	labelPodName    = "io.kubernetes.pod.name"
	defaultGrace    = 30 * time.Second
)

// stopPods stops every pod in the runtime at once, each container with its grace period. The
// agent has already stopped its pods, with hooks and in order; these are the pods that it did
// not stop. When force is closed, the grace periods end.
func (s *Supervisor) stopPods(ctx context.Context, force <-chan struct{}) error {
	sandboxes, err := s.deps.Runtime.ListPodSandboxes(ctx, nil)
	if err != nil {
		return fmt.Errorf("stop pods: %w", err)
	}
	containers, err := s.deps.Runtime.ListContainers(ctx, nil)
	if err != nil {
		return fmt.Errorf("stop pods: %w", err)
	}
	byPod := map[string][]*runtimeapi.Container{}
	for _, c := range containers {
		byPod[c.PodSandboxId] = append(byPod[c.PodSandboxId], c)
	}
	var pods sync.WaitGroup
	problems := make([]error, len(sandboxes))
	for i, sandbox := range sandboxes {
		pods.Go(func() {
			problems[i] = s.stopPod(ctx, force, sandbox, byPod[sandbox.Id])
		})
	}
	pods.Wait()
	return errors.Join(problems...)
}

func (s *Supervisor) stopPod(ctx context.Context, force <-chan struct{}, sandbox *runtimeapi.PodSandbox, containers []*runtimeapi.Container) error {
	began := s.deps.Clock.Now()
	name := sandbox.Labels[labelPodName]
	if name == "" {
		name = sandbox.GetMetadata().GetName()
	}
	var stops sync.WaitGroup
	running := 0
	for _, c := range containers {
		if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		running++
		stops.Go(func() {
			if err := s.stopContainer(ctx, force, c); err != nil {
				s.deps.Log.Warn("teardown: failed to stop container, stopping its sandbox will kill it", "pod", name, "container", c.Id, "err", err)
			}
		})
	}
	if running > 0 {
		s.progress("stopping %s (grace %s)", name, longestGrace(containers))
	}
	stops.Wait()
	if err := s.deps.Runtime.StopPodSandbox(ctx, sandbox.Id); err != nil {
		return fmt.Errorf("stop pod %s: %w", name, err)
	}
	if err := s.deps.Runtime.RemovePodSandbox(ctx, sandbox.Id); err != nil {
		return fmt.Errorf("remove pod %s: %w", name, err)
	}
	if running > 0 {
		s.progress("stopped  %s in %s", name, s.deps.Clock.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// stopContainer stops the container with its grace period. When force is closed, a second call
// without a grace period kills the container, and the first call returns too.
func (s *Supervisor) stopContainer(ctx context.Context, force <-chan struct{}, c *runtimeapi.Container) error {
	graceful := make(chan error, 1)
	go func() { graceful <- s.deps.Runtime.StopContainer(ctx, c.Id, graceOf(c)) }()
	select {
	case err := <-graceful:
		return err
	case <-force:
		err := s.deps.Runtime.StopContainer(ctx, c.Id, 0)
		return errors.Join(err, <-graceful)
	}
}

func graceOf(c *runtimeapi.Container) time.Duration {
	seconds, err := strconv.Atoi(c.Annotations[annotationGrace])
	if err != nil || seconds < 0 {
		return defaultGrace
	}
	return max(pod.Seconds(int64(seconds)), pod.MinGracePeriod)
}

func longestGrace(containers []*runtimeapi.Container) time.Duration {
	var longest time.Duration
	for _, c := range containers {
		longest = max(longest, graceOf(c))
	}
	return longest
}
