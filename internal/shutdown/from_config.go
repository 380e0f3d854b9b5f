package shutdown

import (
	"time"

	"swiftlet/internal/config"
)

// ConfigFrom takes the Config from the kubelet's configuration. It has no groups if graceful
// node shutdown is disabled.
func ConfigFrom(cfg *config.Config) Config {
	return Config{Groups: groupsFrom(cfg), RootDir: cfg.Flags.RootDir, LogindDir: "/etc/systemd/logind.conf.d"}
}

func groupsFrom(cfg *config.Config) []Group {
	kc, f := &cfg.Kubelet, cfg.Features
	switch {
	case !f.GracefulNodeShutdown:
		return nil
	case !f.GracefulNodeShutdownBasedOnPodPriority || len(kc.ShutdownGracePeriodByPodPriority) == 0:
		return groupsByCriticality(kc.ShutdownGracePeriod.Duration, kc.ShutdownGracePeriodCriticalPods.Duration)
	}
	var groups []Group
	for _, g := range kc.ShutdownGracePeriodByPodPriority {
		groups = append(groups, Group{Priority: g.Priority, Grace: time.Duration(g.ShutdownGracePeriodSeconds) * time.Second})
	}
	return groups
}
