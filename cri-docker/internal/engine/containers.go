package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// List returns all containers that have the labels, each as KEY or KEY=VALUE.
func (e *Engine) List(ctx context.Context, labels ...string) ([]container.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	result, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", labels...)})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	return result.Items, nil
}

// Inspect returns everything about one container.
func (e *Engine) Inspect(ctx context.Context, id string) (container.InspectResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	result, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return container.InspectResponse{}, fmt.Errorf("inspect container %s: %w", id, err)
	}
	return result.Container, nil
}

// Create creates a container and returns its ID.
func (e *Engine) Create(ctx context.Context, name string, config *container.Config, host *container.HostConfig) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	result, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{Name: name, Config: config, HostConfig: host})
	if err != nil {
		return "", fmt.Errorf("create container %s: %w", name, err)
	}
	return result.ID, nil
}

// Start starts a container.
func (e *Engine) Start(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	if _, err := e.api.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("start container %s: %w", id, err)
	}
	return nil
}

// Stop sends the container's stop signal, and SIGKILL after the grace period.
func (e *Engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+killing)
	defer cancel()
	seconds := int((grace + time.Second - 1) / time.Second)
	if _, err := e.api.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: &seconds}); err != nil {
		return fmt.Errorf("stop container %s: %w", id, err)
	}
	return nil
}

// Kill sends SIGKILL. It does not wait.
func (e *Engine) Kill(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	if _, err := e.api.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		return fmt.Errorf("kill container %s: %w", id, err)
	}
	return nil
}

// WaitStopped waits until the container does not run.
func (e *Engine) WaitStopped(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, killing)
	defer cancel()
	wait := e.api.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case <-wait.Result:
		return nil
	case err := <-wait.Error:
		return fmt.Errorf("wait for container %s: %w", id, err)
	}
}

// Remove removes a container with its anonymous volumes, also if it runs.
func (e *Engine) Remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	if _, err := e.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{RemoveVolumes: true, Force: true}); err != nil {
		return fmt.Errorf("remove container %s: %w", id, err)
	}
	return nil
}

// Update changes the resources of a container.
func (e *Engine) Update(ctx context.Context, id string, r container.Resources) error {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	if _, err := e.api.ContainerUpdate(ctx, id, client.ContainerUpdateOptions{Resources: &r}); err != nil {
		return fmt.Errorf("update container %s: %w", id, err)
	}
	return nil
}

// Stats reads the usage of a running container once.
func (e *Engine) Stats(ctx context.Context, id string) (container.StatsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	var stats container.StatsResponse
	result, err := e.api.ContainerStats(ctx, id, client.ContainerStatsOptions{})
	if err != nil {
		return stats, fmt.Errorf("read stats of container %s: %w", id, err)
	}
	defer result.Body.Close()
	if err := json.NewDecoder(result.Body).Decode(&stats); err != nil {
		return stats, fmt.Errorf("read stats of container %s: %w", id, err)
	}
	return stats, nil
}
