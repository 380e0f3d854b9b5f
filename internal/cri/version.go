package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
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
		return nil, failed(fmt.Errorf("the runtime serves CRI %q, not v1", response.RuntimeApiVersion), "get runtime version")
	}
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
