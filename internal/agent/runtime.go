package agent

import (
	"context"

	"swiftlet/internal/cri"
)

// runtimeClient is the connection to a container runtime that has responded.
type runtimeClient struct {
	cri      *cri.Client
	identity cri.Identity
}

// dialRuntime connects to the container runtime and waits for its first response, which has the
// cgroup driver.
func dialRuntime(ctx context.Context, b *base) (runtimeClient, error) {
	cfg := cri.ConfigFrom(&b.cfg.Kubelet)
	cfg.Calls, cfg.Subscriptions = b.metrics.CRI()
	cfg.Clock, cfg.Dial = b.clock, b.around.Runtime
	if b.tracing != nil {
		cfg.StatsHandler = b.tracing.CRI()
	}
	client, err := cri.Dial(cfg)
	if err != nil {
		return runtimeClient{}, err
	}
	identity, err := client.Identify(ctx, b.clock, b.log)
	if err != nil {
		_ = client.Close()
		return runtimeClient{}, err
	}
	b.log.Info("connected to container runtime", "name", identity.Name, "version", identity.Version)
	return runtimeClient{client, identity}, nil
}
