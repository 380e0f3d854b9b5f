package container

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/labels"
)

// Create creates a container in a sandbox of that ID and with those labels.
func (s *Containers) Create(ctx context.Context, sandboxID string, sandbox labels.Sandbox, config *runtimeapi.ContainerConfig) (string, error) {
	if config.GetMetadata() == nil || config.GetImage().GetImage() == "" {
		return "", status.Error(codes.InvalidArgument, "create container: metadata and image are required")
	}
	l := labels.Container{SandboxID: sandboxID, Config: config, CreatedAt: time.Now().UnixNano()}
	if dir := sandbox.Config.GetLogDirectory(); dir != "" && config.GetLogPath() != "" {
		l.LogPath = filepath.Join(dir, config.GetLogPath())
	}
	all, err := l.Encode()
	if err != nil {
		return "", err
	}
	img, err := s.Engine.Image(ctx, config.GetImage().GetImage())
	if err != nil {
		return "", fmt.Errorf("create container %s: %w", config.GetMetadata().GetName(), err)
	}
	r := request{config: config, sandboxID: sandboxID, handler: sandbox.Handler, image: img.ID, labels: all, abilities: s.Abilities,
		cgroupParent: CgroupParent(sandbox.Config.GetLinux().GetCgroupParent(), s.CgroupDriver)}
	dockerConfig, hostConfig, err := r.translate()
	if err != nil {
		return "", err
	}
	if err := makeSources(config.GetMounts()); err != nil {
		return "", err
	}
	name := labels.ContainerName(sandboxID, config)
	id, err := s.Engine.Create(ctx, name, dockerConfig, hostConfig)
	if engine.Conflict(err) {
		if err := s.removeUnstarted(ctx, name); err != nil {
			return "", err
		}
		id, err = s.Engine.Create(ctx, name, dockerConfig, hostConfig)
	}
	return id, err
}

// removeUnstarted removes the container of an attempt whose answer got lost. One that has run stays: the name
// is in use, and the error says by what.
func (s *Containers) removeUnstarted(ctx context.Context, name string) error {
	c, l, err := s.Find(ctx, name)
	if engine.NotFound(err) {
		return nil // was removed since
	}
	if err != nil {
		return err
	}
	if State(c.State.Status) != runtimeapi.ContainerState_CONTAINER_CREATED {
		return status.Errorf(codes.AlreadyExists, "create container: attempt %d of %s exists and is %s: %s",
			l.Config.GetMetadata().GetAttempt(), l.Config.GetMetadata().GetName(), c.State.Status, c.ID)
	}
	return s.Engine.Remove(ctx, c.ID)
}
