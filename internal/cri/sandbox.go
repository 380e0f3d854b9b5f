package cri

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunPodSandbox creates and starts a sandbox. It includes the network set-up, so it has twice
// the timeout of an ordinary call.
func (c *Client) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	ctx, cancel := c.withTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	if err == nil && response.PodSandboxId == "" {
		err = errEmptyResponse
	}
	if err != nil {
		return "", failed(err, "run pod sandbox")
	}
	return response.PodSandboxId, nil
}

// UpdatePodSandboxResources sends the resources of the whole pod to the runtime. It is not an
// error if the runtime does not implement the call.
func (c *Client) UpdatePodSandboxResources(ctx context.Context, id string, overhead, resources *runtimeapi.LinuxContainerResources) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	_, err := c.runtime.UpdatePodSandboxResources(ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: id, Overhead: overhead, Resources: resources})
	// containerd before 2.3 returns Unknown with that text.
	if IsUnimplemented(err) || code(err) == codes.Unknown && strings.Contains(err.Error(), "not implemented") {
		return nil
	}
	return failed(err, "update resources of pod sandbox "+id)
}

// StopPodSandbox stops the containers in the sandbox and tears its network down.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	_, err := c.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	return failed(ignoreNotFound(err), "stop pod sandbox "+id)
}

// RemovePodSandbox removes the sandbox and every container in it, running or not.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	_, err := c.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return failed(ignoreNotFound(err), "remove pod sandbox "+id)
}

// PodSandboxStatus reads one sandbox; the response's Status is never nil.
func (c *Client) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id, Verbose: verbose})
	if err == nil && response.Status == nil {
		err = errEmptyResponse
	}
	if err != nil {
		return nil, failed(err, "get status of pod sandbox "+id)
	}
	return response, nil
}

// ListPodSandboxes lists the sandboxes that match; a nil filter matches all.
func (c *Client) ListPodSandboxes(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: filter})
	if err != nil {
		return nil, failed(err, "list pod sandboxes")
	}
	return response.Items, nil
}

// ListPodSandboxStats reads the usage of the sandboxes that match.
func (c *Client) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.ListPodSandboxStats(ctx, &runtimeapi.ListPodSandboxStatsRequest{Filter: filter})
	if err != nil {
		return nil, failed(err, "list pod sandbox stats")
	}
	return response.Stats, nil
}

// ListPodSandboxMetrics reads the metrics of all sandboxes and their containers.
func (c *Client) ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.ListPodSandboxMetrics(ctx, &runtimeapi.ListPodSandboxMetricsRequest{})
	if err != nil {
		return nil, failed(err, "list pod sandbox metrics")
	}
	return response.PodMetrics, nil
}

// ListMetricDescriptors reads the names and labels of the runtime's metrics.
func (c *Client) ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.ListMetricDescriptors(ctx, &runtimeapi.ListMetricDescriptorsRequest{})
	if err != nil {
		return nil, failed(err, "list metric descriptors")
	}
	return response.Descriptors, nil
}

// SandboxIPs reads the IPs of a sandbox, the primary one first; a pod in the host network has
// none.
func (c *Client) SandboxIPs(ctx context.Context, id string) ([]string, error) {
	response, err := c.PodSandboxStatus(ctx, id, false)
	if err != nil {
		return nil, err
	}
	return ipsOf(response.Status.Network), nil
}
