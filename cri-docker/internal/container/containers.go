package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/labels"
	"swiftlet/cri-docker/internal/logs"
)

// logPatience bounds how long a status waits for the end of a log. Docker has written it before the exit.
const logPatience = 5 * time.Second

// Containers acts on containers of sandboxes. It has no state: all is in Docker.
type Containers struct {
	Engine       *engine.Engine
	Logs         *logs.Logs
	Abilities    Abilities
	CgroupDriver string
	Log          *slog.Logger
}

// Find returns a container of this server with its labels. Other containers do not exist for the CRI.
func (s *Containers) Find(ctx context.Context, id string) (dockercontainer.InspectResponse, labels.Container, error) {
	c, err := s.Engine.Inspect(ctx, id)
	if err != nil {
		return c, labels.Container{}, err
	}
	l, err := labels.DecodeContainer(c.Name, c.Config.Labels)
	if err != nil {
		return c, l, &notOurs{id: id, err: err}
	}
	return c, l, nil
}

// notOurs makes Docker's containers that are not this server's look as if they did not exist.
type notOurs struct {
	id  string
	err error
}

func (e *notOurs) Error() string { return fmt.Sprintf("find container %s: %v", e.id, e.err) }
func (e *notOurs) Unwrap() error { return e.err }
func (e *notOurs) NotFound()     {} // as errdefs knows it

// List lists the containers that match.
func (s *Containers) List(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	terms := []string{labels.Kind + "=" + labels.KindOfMember}
	if id := filter.GetPodSandboxId(); id != "" && len(id) == idLength {
		terms = append(terms, labels.SandboxID+"="+id)
	}
	found, err := s.Engine.List(ctx, terms...)
	if err != nil {
		return nil, err
	}
	var all []*runtimeapi.Container
	for _, item := range found {
		if c, ok := s.summarize(item); ok && matches(c, filter) {
			all = append(all, c)
		}
	}
	return all, nil
}

// idLength is that of a complete ID of Docker.
const idLength = 64

func (s *Containers) summarize(item dockercontainer.Summary) (*runtimeapi.Container, bool) {
	if len(item.Names) == 0 {
		return nil, false // is being removed
	}
	l, err := labels.DecodeContainer(item.Names[0], item.Labels)
	if err != nil {
		if !errors.Is(err, labels.ErrForeign) {
			s.Log.Warn("ignored a container with unreadable labels", "container", item.ID, "err", err)
		}
		return nil, false
	}
	return &runtimeapi.Container{
		Id: item.ID, PodSandboxId: l.SandboxID, Metadata: l.Config.GetMetadata(), Image: l.Config.GetImage(),
		ImageRef: item.ImageID, ImageId: item.ImageID, State: State(item.State),
		CreatedAt: l.CreatedAt, Labels: l.Config.GetLabels(), Annotations: l.Config.GetAnnotations(),
	}, true
}

func matches(c *runtimeapi.Container, f *runtimeapi.ContainerFilter) bool {
	return labels.MatchID(c.GetId(), f.GetId()) && labels.MatchID(c.GetPodSandboxId(), f.GetPodSandboxId()) &&
		(f.GetState() == nil || f.GetState().GetState() == c.GetState()) &&
		labels.MatchLabels(c.GetLabels(), f.GetLabelSelector())
}

// Status returns the status of a container. If it has exited, its log is complete.
func (s *Containers) Status(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	c, l, err := s.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if c.State != nil && !c.State.Running && c.State.Pid == 0 && c.LogPath != "" {
		s.finishLog(ctx, c, l)
	}
	img, err := s.Engine.Image(ctx, c.Image)
	if err != nil && !engine.NotFound(err) {
		return nil, err
	}
	if err != nil {
		return Describe(c, l, nil), nil
	}
	return Describe(c, l, &img), nil
}

func (s *Containers) finishLog(ctx context.Context, c dockercontainer.InspectResponse, l labels.Container) {
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	if err := s.Logs.Finish(ctx, c.ID, c.LogPath, l.LogPath); err != nil {
		s.Log.Warn("log of exited container is not complete yet", "container", c.ID, "err", err)
	}
}
