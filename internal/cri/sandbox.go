package cri

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunPodSandbox makes and starts a sandbox. The network set-up is part of it, so it gets
// twice the time of an ordinary call.
func (c *Client) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	ctx, cancel := c.within(ctx, c.timeout)
	defer cancel()
	answer, err := c.runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	if err == nil && answer.PodSandboxId == "" {
		err = errEmptyAnswer
	}
	if err != nil {
		return "", failed(err, "run pod sandbox")
	}
	return answer.PodSandboxId, nil
}

// UpdatePodSandboxResources tells the runtime which resources the pod as a whole will have.
// A runtime that does not want to know is told nothing.
func (c *Client) UpdatePodSandboxResources(ctx context.Context, id string, overhead, resources *runtimeapi.LinuxContainerResources) error {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	_, err := c.runtime.UpdatePodSandboxResources(ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: id, Overhead: overhead, Resources: resources})
	// containerd says so in words before 2.3.
	if IsUnimplemented(err) || codeOf(err) == codes.Unknown && strings.Contains(err.Error(), "not implemented") {
		return nil
	}
	return failed(err, "update resources of pod sandbox "+id)
}

// StopPodSandbox stops what still runs in the sandbox and takes its network down.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	_, err := c.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	return failed(goneIsDone(err), "stop pod sandbox "+id)
}

// RemovePodSandbox removes the sandbox and every container in it, by force.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	_, err := c.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return failed(goneIsDone(err), "remove pod sandbox "+id)
}

// PodSandboxStatus reads one sandbox; the answer's Status is never nil.
func (c *Client) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	answer, err := c.runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id, Verbose: verbose})
	if err == nil && answer.Status == nil {
		err = errEmptyAnswer
	}
	if err != nil {
		return nil, failed(err, "get status of pod sandbox "+id)
	}
	return answer, nil
}

// ListPodSandboxes lists the sandboxes that match; a nil filter matches all.
func (c *Client) ListPodSandboxes(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	answer, err := c.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: filter})
	if err != nil {
		return nil, failed(err, "list pod sandboxes")
	}
	return answer.Items, nil
}

// ListPodSandboxStats reads the usage of the sandboxes that match.
func (c *Client) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	answer, err := c.runtime.ListPodSandboxStats(ctx, &runtimeapi.ListPodSandboxStatsRequest{Filter: filter})
	if err != nil {
		return nil, failed(err, "list pod sandbox stats")
	}
	return answer.Stats, nil
}

// SandboxIPs reads the addresses of a sandbox, the main one first; a pod on the host's
// network has none of its own.
func (c *Client) SandboxIPs(ctx context.Context, id string) ([]string, error) {
	answer, err := c.PodSandboxStatus(ctx, id, false)
	if err != nil {
		return nil, err
	}
	return ipsOf(answer.Status.Network), nil
}
