package main

import (
	"context"
	"log/slog"

	"swiftlet/internal/config"
)

// runAgent stands where agent.Run will be called.
func runAgent(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	log.Info("configuration is in order", "runtime", cfg.Kubelet.ContainerRuntimeEndpoint)
	<-ctx.Done()
	return nil
}
