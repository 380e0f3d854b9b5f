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
	// annotationGrace is where a container bears its pod's grace period, in seconds.
	annotationGrace = "io.kubernetes.pod.terminationGracePeriod"
	labelPodName    = "io.kubernetes.pod.name"
	defaultGrace    = 30 * time.Second
)

// stopPods ends every pod the runtime holds: all at once, each container with its own
// grace period. The agent has had its turn by then, with hooks and order; this is for
// what it could not, or was not there to, stop. hurry cuts the grace short.
func (s *Supervisor) stopPods(ctx context.Context, hurry <-chan struct{}) error {
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
			problems[i] = s.stopPod(ctx, hurry, sandbox, byPod[sandbox.Id])
		})
	}
	pods.Wait()
	return errors.Join(problems...)
}

func (s *Supervisor) stopPod(ctx context.Context, hurry <-chan struct{}, sandbox *runtimeapi.PodSandbox, containers []*runtimeapi.Container) error {
	began := s.deps.Clock.Now()
	name := sandbox.Labels[labelPodName]
	if name == "" {
		name = sandbox.GetMetadata().GetName()
	}
	var all sync.WaitGroup
	running := 0
	for _, c := range containers {
		if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		running++
		all.Go(func() {
			if err := s.stopContainer(ctx, hurry, c); err != nil {
				s.deps.Log.Warn("stopping a container failed; its sandbox's end will kill it", "pod", name, "err", err)
			}
		})
	}
	if running > 0 {
		s.say("stopping %s (grace %s)", name, longestGrace(containers))
	}
	all.Wait()
	if err := s.deps.Runtime.StopPodSandbox(ctx, sandbox.Id); err != nil {
		return fmt.Errorf("stop pod %s: %w", name, err)
	}
	if err := s.deps.Runtime.RemovePodSandbox(ctx, sandbox.Id); err != nil {
		return fmt.Errorf("remove pod %s: %w", name, err)
	}
	if running > 0 {
		s.say("stopped  %s in %s", name, s.deps.Clock.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// stopContainer gives the container its grace; when the user is in a hurry a second call
// without any overtakes the first, which the runtime then ends too.
func (s *Supervisor) stopContainer(ctx context.Context, hurry <-chan struct{}, c *runtimeapi.Container) error {
	polite := make(chan error, 1)
	go func() { polite <- s.deps.Runtime.StopContainer(ctx, c.Id, graceOf(c)) }()
	select {
	case err := <-polite:
		return err
	case <-hurry:
		err := s.deps.Runtime.StopContainer(ctx, c.Id, 0)
		return errors.Join(err, <-polite)
	}
}

func graceOf(c *runtimeapi.Container) time.Duration {
	seconds, err := strconv.Atoi(c.Annotations[annotationGrace])
	if err != nil || seconds < 0 {
		return defaultGrace
	}
	return max(time.Duration(seconds)*time.Second, pod.MinStop)
}

func longestGrace(containers []*runtimeapi.Container) time.Duration {
	var longest time.Duration
	for _, c := range containers {
		longest = max(longest, graceOf(c))
	}
	return longest
}
