package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/jsonstream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/labels"
	"swiftlet/cri-docker/internal/network"
)

// cleanupLimit bounds what follows a failed start, also if the caller has given up.
const cleanupLimit = 2 * time.Minute

// Run starts a sandbox and connects it. After an error nothing is left of it.
func (s *Sandboxes) Run(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	if config.GetMetadata() == nil {
		return "", status.Error(codes.InvalidArgument, "run sandbox: metadata is required")
	}
	image, err := s.pauseImage(ctx)
	if err != nil {
		return "", fmt.Errorf("run sandbox: %w", err)
	}
	l := labels.Sandbox{Config: config, Handler: handler, CreatedAt: time.Now().UnixNano()}
	dockerConfig, hostConfig, err := translate(l, image, s.Containers.CgroupDriver, s.Containers.Abilities)
	if err != nil {
		return "", err
	}
	name := labels.SandboxName(config)
	if _, starting := s.starting.LoadOrStore(name, true); starting {
		return "", status.Errorf(codes.AlreadyExists, "run sandbox: this attempt is being started: %s", name)
	}
	defer s.starting.Delete(name)
	id, err := s.create(ctx, name, dockerConfig, hostConfig)
	if err != nil {
		return "", fmt.Errorf("run sandbox: %w", err)
	}
	if err := s.start(ctx, id, config); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		return "", errors.Join(fmt.Errorf("run sandbox: %w", err), s.Remove(cleanup, id))
	}
	return id, nil
}

func (s *Sandboxes) create(ctx context.Context, name string, c *dockercontainer.Config, h *dockercontainer.HostConfig) (string, error) {
	id, err := s.Engine.Create(ctx, name, c, h)
	if !engine.Conflict(err) {
		return id, err
	}
	existing, l, findErr := s.Find(ctx, name)
	if engine.NotFound(findErr) {
		return s.Engine.Create(ctx, name, c, h) // removed since, or another's: then the error says so
	}
	if findErr != nil {
		return "", findErr
	}
	p, findErr := s.read(existing, l)
	if findErr != nil {
		return "", findErr
	}
	if p.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY {
		return "", status.Errorf(codes.AlreadyExists, "this attempt is running: %s", existing.ID)
	}
	// The answer to an earlier request got lost, and the sandbox is not complete.
	if err := s.Remove(ctx, existing.ID); err != nil {
		return "", err
	}
	return s.Engine.Create(ctx, name, c, h)
}

func (s *Sandboxes) start(ctx context.Context, id string, config *runtimeapi.PodSandboxConfig) error {
	if err := s.Engine.Start(ctx, id); err != nil {
		return err
	}
	c, err := s.Engine.Inspect(ctx, id)
	if err != nil {
		return err
	}
	if !c.State.Running {
		return fmt.Errorf("the pause process exited with code %d: %s", c.State.ExitCode, c.State.Error)
	}
	if err := writeResolvConf(c.ResolvConfPath, config.GetDnsConfig()); err != nil {
		return err
	}
	if hostNetwork(config) {
		return nil
	}
	return s.Network.Attach(ctx, network.Pod{ID: id, Config: config}, network.OfProcess(c.State.Pid))
}

// pauseImage returns the image's ID. It is pulled if it is missing.
func (s *Sandboxes) pauseImage(ctx context.Context) (string, error) {
	image, err := s.Engine.Image(ctx, s.PauseImage)
	if engine.NotFound(err) {
		if err := s.Engine.Pull(ctx, s.PauseImage, "", func(jsonstream.Message) {}); err != nil {
			return "", fmt.Errorf("pause image %s is missing and cannot be pulled; load it, or name another with --pause-image: %w", s.PauseImage, err)
		}
		image, err = s.Engine.Image(ctx, s.PauseImage)
	}
	if err != nil {
		return "", fmt.Errorf("find pause image: %w", err)
	}
	return image.ID, nil
}
