package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// apiVersion is what the agent says it speaks; runtimes do not act on it.
const apiVersion = "0.1.0"

// Version asks who the runtime is. A runtime that does not serve CRI v1 is refused.
func (c *Client) Version(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	answer, err := c.runtime.Version(ctx, &runtimeapi.VersionRequest{Version: apiVersion})
	if err != nil {
		return nil, failed(err, "get runtime version")
	}
	if answer.RuntimeApiVersion != "v1" {
		return nil, failed(fmt.Errorf("the runtime serves CRI %q, not v1", answer.RuntimeApiVersion), "get runtime version")
	}
	return answer, nil
}

// Status asks for the runtime's conditions, handlers and features. The answer's Status
// is never nil.
func (c *Client) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	answer, err := c.runtime.Status(ctx, &runtimeapi.StatusRequest{Verbose: verbose})
	if err == nil && answer.Status == nil {
		err = errEmptyAnswer
	}
	if err != nil {
		return nil, failed(err, "get runtime status")
	}
	return answer, nil
}

// RuntimeConfig asks for the settings that both sides must share, as the cgroup driver.
func (c *Client) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	answer, err := c.runtime.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	if err != nil {
		return nil, failed(err, "get runtime configuration")
	}
	return answer, nil
}

// UpdateRuntimeConfig tells the runtime the node's pod network.
func (c *Client) UpdateRuntimeConfig(ctx context.Context, podCIDR string) error {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	_, err := c.runtime.UpdateRuntimeConfig(ctx, &runtimeapi.UpdateRuntimeConfigRequest{
		RuntimeConfig: &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: podCIDR}},
	})
	return failed(err, "update runtime configuration")
}
