package podsync

import (
	"swiftlet/internal/config"
	"swiftlet/internal/pod"
)

// ConfigFrom reads how pods are run. The node is of IPv6 first where ipv6First says so.
func ConfigFrom(cfg *config.Config, runtimeName string, ipv6First bool) Config {
	c := Config{
		RuntimeName:         runtimeName,
		MaxDeadPerContainer: int(cfg.Flags.MaximumDeadContainersPerContainer),
		MinDeadAge:          cfg.Flags.MinimumContainerTTL,
		MaxDead:             int(cfg.Flags.MaximumDeadContainers),
		Fields:              pod.NewGatedFields(cfg.Gate),
		IPv6First:           ipv6First,
	}
	c.CrashBackoff.First, c.CrashBackoff.Longest = cfg.CrashBackoff()
	return c
}
