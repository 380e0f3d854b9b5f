package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/clip"
)

// apiVersion is sent with Version; runtimes ignore it.
const apiVersion = "0.1.0"

// Version returns the name and version of the runtime. It fails if that does not serve CRI v1.
func (c *Client) Version(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.Version(ctx, &runtimeapi.VersionRequest{Version: apiVersion})
	if err != nil {
		return nil, failed(err, "get runtime version")
	}
	if response.RuntimeApiVersion != "v1" {
		return nil, failed(fmt.Errorf("the runtime serves CRI %q, not v1", clip.Text(response.RuntimeApiVersion, clip.Name)), "get runtime version")
	}
	response.RuntimeName, response.RuntimeVersion = clip.Text(response.RuntimeName, clip.Name), clip.Text(response.RuntimeVersion, clip.Name)
	return response, nil
}

// Status returns the runtime's conditions, handlers and features. The response's Status is
// never nil.
func (c *Client) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.Status(ctx, &runtimeapi.StatusRequest{Verbose: verbose})
	if err == nil && response.Status == nil {
		err = errEmptyResponse
	}
	if err != nil {
		return nil, failed(err, "get runtime status")
	}
	for _, c := range response.Status.Conditions {
		c.Reason, c.Message = clip.Text(c.Reason, clip.Name), clip.Text(c.Message, clip.Message)
	}
	return response, nil
}

// RuntimeConfig returns the settings that kubelet and runtime must share, such as the cgroup driver.
func (c *Client) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	if err != nil {
		return nil, failed(err, "get runtime configuration")
	}
	return response, nil
}

// UpdateRuntimeConfig sends the node's pod CIDR to the runtime.
func (c *Client) UpdateRuntimeConfig(ctx context.Context, podCIDR string) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	_, err := c.runtime.UpdateRuntimeConfig(ctx, &runtimeapi.UpdateRuntimeConfigRequest{
		RuntimeConfig: &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: podCIDR}},
	})
	return failed(err, "update runtime configuration")
}
