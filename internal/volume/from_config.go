package volume

import (
	"time"

	"swiftlet/internal/config"
)

// ConfigFrom reads how volumes are mounted. selinux says that the kernel labels files.
func ConfigFrom(cfg *config.Config, nodeName string, selinux bool) Config {
	c := Config{
		RootDir: cfg.Flags.RootDir, NodeName: nodeName, FlexVolumeDir: cfg.Kubelet.VolumePluginDir,
		SELinux: selinux, SELinuxMountReadWriteOncePodOnly: !cfg.Features.SELinuxMount,
		BindMountOptions: cfg.Features.VolumeBindMountOptions,
	}
	if cfg.Features.CSIVolumeHealth {
		if c.HealthPeriod = cfg.Kubelet.VolumeStatsAggPeriod.Duration; c.HealthPeriod <= 0 {
			c.HealthPeriod = time.Minute
		}
	}
	return c
}
