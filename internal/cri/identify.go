package cri

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// identifyRetry is the wait between two attempts to reach a runtime that is not up yet.
const identifyRetry = 250 * time.Millisecond

// Identity is the runtime's name, version and settings.
type Identity struct {
	Name    string
	Version string
	// CgroupDriver is "cgroupfs" or "systemd"; empty if the runtime does not report it.
	CgroupDriver string
}

// Identify waits until the runtime is up and answers, or ctx is done.
func (c *Client) Identify(ctx context.Context, clk clock.Clock, log *slog.Logger) (Identity, error) {
	version, err := await(ctx, clk, func(failed bool) (*runtimeapi.VersionResponse, error) {
		version, err := c.Version(ctx)
		if err != nil && !failed {
			log.Warn("cri: waiting for container runtime", "endpoint", c.endpoint, "err", err)
		}
		return version, err
	})
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Name: version.RuntimeName, Version: version.RuntimeVersion}
	// The runtime may have restarted since.
	config, err := await(ctx, clk, func(failed bool) (*runtimeapi.RuntimeConfigResponse, error) {
		config, err := c.RuntimeConfig(ctx)
		if IsUnimplemented(err) {
			return nil, nil
		}
		if err != nil && !failed {
			log.Warn("cri: failed to read cgroup driver of the runtime, will retry", "endpoint", c.endpoint, "err", err)
		}
		return config, err
	})
	if err != nil {
		return Identity{}, err
	}
	if linux := config.GetLinux(); linux != nil {
		id.CgroupDriver = strings.ToLower(runtimeapi.CgroupDriver_name[int32(linux.GetCgroupDriver())])
	}
	return id, nil
}

// await calls the runtime until it succeeds or ctx is done. call gets whether it has failed before.
func await[T any](ctx context.Context, clk clock.Clock, call func(failed bool) (T, error)) (T, error) {
	for failed := false; ; failed = true {
		answer, err := call(failed)
		if err == nil {
			return answer, nil
		}
		select {
		case <-ctx.Done():
			return answer, fmt.Errorf("wait for the container runtime: %w", ctx.Err())
		case <-clk.After(identifyRetry):
		}
	}
}
