package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/host"
	"swiftlet/cri-docker/internal/labels"
)

// Start starts a created container. Its log exists when this returns.
func (s *Containers) Start(ctx context.Context, id string) error {
	c, l, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	if state := State(c.State.Status); state != runtimeapi.ContainerState_CONTAINER_CREATED {
		return status.Errorf(codes.FailedPrecondition, "start container %s: it is %s", id, c.State.Status)
	}
	if err := s.Engine.Start(ctx, c.ID); err != nil {
		return err
	}
	if err := s.started(ctx, c.ID, l); err != nil {
		// Without its limits or its log it must not run on as if it were started.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		return errors.Join(fmt.Errorf("start container %s: %w", id, err), Stop(cleanup, s.Engine, c.ID, 0))
	}
	return nil
}

const cleanupLimit = time.Minute

// started does what Docker does not when a container starts.
func (s *Containers) started(ctx context.Context, id string, l labels.Container) error {
	c, err := s.Engine.Inspect(ctx, id)
	if err != nil {
		return err
	}
	if err := s.applyFiles(c.State.Pid, l.Config.GetLinux().GetResources()); err != nil {
		return err
	}
	return s.FollowLog(c.ID, c.LogPath, l)
}

// applyFiles sets limits that Docker has no API for. Until then the container has those of its pod.
func (s *Containers) applyFiles(pid int, r *runtimeapi.LinuxContainerResources) error {
	files := cgroupFiles(r, s.Abilities.Limits)
	if pid == 0 || len(files) == 0 {
		return nil // it has exited already
	}
	return host.SetCgroup(pid, files)
}

// FollowLog converts the log of a container that was started.
func (s *Containers) FollowLog(id, source string, l labels.Container) error {
	if l.LogPath == "" || source == "" {
		return nil
	}
	return s.Logs.Follow(id, source, l.LogPath)
}

// Update changes limits of a container that runs or was created.
func (s *Containers) Update(ctx context.Context, id string, r *runtimeapi.LinuxContainerResources) error {
	c, _, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	if State(c.State.Status) == runtimeapi.ContainerState_CONTAINER_EXITED {
		return status.Errorf(codes.FailedPrecondition, "update container %s: it has exited", id)
	}
	if err := s.Engine.Update(ctx, c.ID, resources(r)); err != nil {
		return err
	}
	if err := s.applyFiles(c.State.Pid, r); err != nil {
		return fmt.Errorf("update container %s: %w", id, err)
	}
	return nil
}
