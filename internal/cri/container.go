package cri

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer creates a container in the sandbox without starting it.
func (c *Client) CreateContainer(ctx context.Context, sandboxID string, config *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandboxID, Config: config, SandboxConfig: sandbox,
	})
	if err == nil && response.ContainerId == "" {
		err = errEmptyResponse
	}
	if err != nil {
		return "", failed(err, "create container "+config.GetMetadata().GetName()+" in sandbox "+sandboxID)
	}
	return response.ContainerId, nil
}

// StartContainer starts a created container.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	_, err := c.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id})
	return failed(err, "start container "+id)
}

// StopContainer sends the stop signal and kills the container after the grace period, which
// the runtime counts in whole seconds.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	ctx, cancel := c.withTimeout(ctx, grace)
	defer cancel()
	_, err := c.runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: int64(grace / time.Second)})
	return failed(ignoreNotFound(err), "stop container "+id)
}

// RemoveContainer removes the container, running or not.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	_, err := c.runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return failed(ignoreNotFound(err), "remove container "+id)
}

// ContainerStatus reads one container; the response's Status is never nil.
func (c *Client) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: verbose})
	if err == nil && response.Status == nil {
		err = errEmptyResponse
	}
	if err != nil {
		return nil, failed(err, "get status of container "+id)
	}
	return response, nil
}

// ListContainers lists the containers that match; a nil filter matches all.
func (c *Client) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
	if err != nil {
		return nil, failed(err, "list containers")
	}
	return response.Containers, nil
}

// UpdateContainerResources changes the limits of a running container.
func (c *Client) UpdateContainerResources(ctx context.Context, id string, linux *runtimeapi.LinuxContainerResources) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	_, err := c.runtime.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: linux})
	return failed(err, "update resources of container "+id)
}

// ListContainerStats reads the usage of the containers that match; a nil filter matches all.
func (c *Client) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{Filter: filter})
	if err != nil {
		return nil, failed(err, "list container stats")
	}
	return response.Stats, nil
}

// ReopenContainerLog makes the runtime open a new log file after a rotation.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	_, err := c.runtime.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: id})
	return failed(err, "reopen log of container "+id)
}

// Checkpoint writes a checkpoint of a running container to an archive at path. The runtime
// enforces the timeout; zero is the runtime's default.
func (c *Client) Checkpoint(ctx context.Context, id, path string, timeout time.Duration) error {
	ctx, cancel := c.withTimeout(ctx, timeout)
	defer cancel()
	_, err := c.runtime.CheckpointContainer(ctx, &runtimeapi.CheckpointContainerRequest{
		ContainerId: id, Location: path, Timeout: wholeSeconds(timeout),
	})
	return failed(err, "checkpoint container "+id)
}
