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

// identifyRetry is the wait between two attempts to reach a runtime that does not answer yet.
const identifyRetry = 250 * time.Millisecond

// Identity is what the runtime says about itself.
type Identity struct {
	Name    string
	Version string
	// CgroupDriver is "cgroupfs" or "systemd"; empty where the runtime does not say.
	CgroupDriver string
}

// Identify waits for the runtime's first answer, until ctx ends.
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
			log.Warn("waiting for the container runtime", "endpoint", c.endpoint, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the container runtime: %w", ctx.Err())
		case <-clk.After(identifyRetry):
		}
	}
}
