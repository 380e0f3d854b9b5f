package container

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/labels"
)

// ResumeLogs goes on with all logs where they were when this program or the connection to Docker ended.
func (s *Containers) ResumeLogs(ctx context.Context) {
	known, err := s.Logs.Known() // first: a container may be created meanwhile
	if err != nil {
		s.Log.Error("failed to find old log positions", "err", err)
	}
	found, err := s.Engine.List(ctx, labels.Kind+"="+labels.KindOfMember)
	if err != nil {
		s.Log.Error("failed to resume logs", "err", err)
		return
	}
	exists := map[string]bool{}
	for _, item := range found {
		exists[item.ID] = true
		if c, ok := s.summarize(item); !ok || c.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED {
			continue
		}
		if err := s.resumeLog(ctx, item.ID); err != nil && !engine.NotFound(err) {
			s.Log.Error("failed to resume log", "container", item.ID, "err", err)
		}
	}
	for _, id := range known {
		if !exists[id] {
			s.Logs.Remove(id)
		}
	}
}

func (s *Containers) resumeLog(ctx context.Context, id string) error {
	c, l, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	if !c.State.Running {
		s.finishLog(ctx, c, l)
		return nil
	}
	return s.FollowLog(c.ID, c.LogPath, l)
}
