package dra

import "swiftlet/internal/config"

// ConfigFrom reads what drivers of resource claims may do.
func ConfigFrom(cfg *config.Config) Config {
	return Config{
		RootDir: cfg.Flags.RootDir,
		Health:  cfg.Features.ResourceHealthStatus, HealthMessages: cfg.Features.ResourceHealthStatusMessage,
		OptionalOperations: cfg.Features.DRAOptionalNodeOperations, PodGroupClaims: cfg.Features.DRAWorkloadResourceClaims,
	}
}
