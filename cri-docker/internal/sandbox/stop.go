package sandbox

import (
	"context"
	"fmt"

	dockercontainer "github.com/moby/moby/api/types/container"
	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/container"
	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/labels"
	"swiftlet/cri-docker/internal/network"
)

// Stop kills the pod's containers, disconnects the sandbox and stops the pause process. It may be repeated.
func (s *Sandboxes) Stop(ctx context.Context, id string) error {
	c, l, err := s.Find(ctx, id)
	if engine.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.stop(ctx, c, l)
}

func (s *Sandboxes) stop(ctx context.Context, c dockercontainer.InspectResponse, l labels.Sandbox) error {
	err := s.eachContainer(ctx, c.ID, func(ctx context.Context, id string) error {
		return s.Containers.Stop(ctx, id, 0)
	})
	if err != nil {
		return fmt.Errorf("stop sandbox %s: %w", c.ID, err)
	}
	if !hostNetwork(l.Config) {
		netns := ""
		if c.State.Running {
			netns = network.OfProcess(c.State.Pid)
		}
		if err := s.Network.Detach(ctx, network.Pod{ID: c.ID, Config: l.Config}, netns); err != nil {
			return fmt.Errorf("stop sandbox %s: %w", c.ID, err)
		}
	}
	if !c.State.Running {
		return nil
	}
	return container.Stop(ctx, s.Engine, c.ID, 0) // the pause process has nothing to finish
}

// Remove removes a sandbox and its containers, also if they run. It may be repeated.
func (s *Sandboxes) Remove(ctx context.Context, id string) error {
	c, l, err := s.Find(ctx, id)
	if engine.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.stop(ctx, c, l); err != nil {
		return err
	}
	if err := s.eachContainer(ctx, c.ID, s.Containers.Remove); err != nil {
		return fmt.Errorf("remove sandbox %s: %w", c.ID, err)
	}
	if err := s.Engine.Remove(ctx, c.ID); err != nil && !engine.NotFound(err) {
		return err
	}
	return nil
}

// eachContainer acts on all containers of a sandbox at the same time.
func (s *Sandboxes) eachContainer(ctx context.Context, id string, act func(context.Context, string) error) error {
	all, err := s.Containers.List(ctx, &runtimeapi.ContainerFilter{PodSandboxId: id})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range all {
		group.Go(func() error { return act(ctx, c.GetId()) })
	}
	return group.Wait()
}
