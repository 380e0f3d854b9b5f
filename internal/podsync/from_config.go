package podsync

import (
	"swiftlet/internal/config"
	"swiftlet/internal/pod"
)

// ConfigFrom returns the Config of the kubelet's configuration. ipv6First: IPv6 is the node's primary
// family.
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
