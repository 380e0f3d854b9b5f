package container

import (
	"context"
	"time"

	"swiftlet/cri-docker/internal/engine"
)

// Stop stops a container with a grace period. A container that does not run, or does not exist, is no error.
func (s *Containers) Stop(ctx context.Context, id string, grace time.Duration) error {
	c, _, err := s.Find(ctx, id)
	if engine.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !c.State.Running {
		return nil
	}
	return Stop(ctx, s.Engine, c.ID, grace)
}

// Stop stops any container of Docker. Without a grace period it gets no other signal than SIGKILL.
func Stop(ctx context.Context, e *engine.Engine, id string, grace time.Duration) error {
	var err error
	if grace > 0 {
		err = e.Stop(ctx, id, grace)
	} else if err = e.Kill(ctx, id); err == nil {
		err = e.WaitStopped(ctx, id)
	}
	if engine.NotFound(err) {
		return nil
	}
	if engine.Conflict(err) { // it has exited meanwhile
		if c, inspectErr := e.Inspect(ctx, id); inspectErr == nil && !c.State.Running {
			return nil
		}
	}
	return err
}

// Remove removes a container, also if it runs. The log stays.
func (s *Containers) Remove(ctx context.Context, id string) error {
	c, l, err := s.Find(ctx, id)
	if engine.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.State.Running {
		if err := Stop(ctx, s.Engine, c.ID, 0); err != nil {
			return err
		}
	}
	if c.LogPath != "" {
		s.finishLog(ctx, c, l)
	}
	if err := s.Engine.Remove(ctx, c.ID); err != nil && !engine.NotFound(err) {
		return err
	}
	s.Logs.Remove(c.ID)
	return nil
}

// ReopenLog continues in a new file after the log was renamed.
func (s *Containers) ReopenLog(ctx context.Context, id string) error {
	c, _, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	return s.Logs.Reopen(ctx, c.ID)
}
