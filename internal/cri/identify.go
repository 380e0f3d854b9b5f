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

// Identify waits until the runtime is up or ctx is done.
func (c *Client) Identify(ctx context.Context, clk clock.Clock, log *slog.Logger) (Identity, error) {
	version, err := c.awaitVersion(ctx, clk, log)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Name: version.RuntimeName, Version: version.RuntimeVersion}
	config, err := c.RuntimeConfig(ctx)
	switch {
	case IsUnimplemented(err):
		return id, nil
	case err != nil:
		return Identity{}, fmt.Errorf("read cgroup driver of the runtime: %w", err)
	}
	if linux := config.GetLinux(); linux != nil {
		id.CgroupDriver = strings.ToLower(runtimeapi.CgroupDriver_name[int32(linux.GetCgroupDriver())])
	}
	return id, nil
}

func (c *Client) awaitVersion(ctx context.Context, clk clock.Clock, log *slog.Logger) (*runtimeapi.VersionResponse, error) {
	for logged := false; ; logged = true {
		version, err := c.Version(ctx)
		if err == nil {
			return version, nil
		}
		if !logged {
			log.Warn("cri: waiting for container runtime", "endpoint", c.endpoint, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the container runtime: %w", ctx.Err())
		case <-clk.After(identifyRetry):
		}
	}
}
