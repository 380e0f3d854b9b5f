package podsync

import (
	"swiftlet/internal/config"
	"swiftlet/internal/pod"
)

// ConfigFrom reads how pods are run. The node is of IPv6 first where ipv6First says so.
func ConfigFrom(cfg *config.Config, runtimeName string, ipv6First bool) Config {
	c := Config{
		RuntimeName: runtimeName,
		KeepDead:    int(cfg.Flags.MaximumDeadContainersPerContainer),
		KeepFor:     cfg.Flags.MinimumContainerTTL,
		KeepOnNode:  int(cfg.Flags.MaximumDeadContainers),
		Fields:      pod.NewGatedFields(cfg.Gate),
		IPv6First:   ipv6First,
	}
	c.Backoff.First, c.Backoff.Longest = cfg.CrashBackoff()
	return c
}
