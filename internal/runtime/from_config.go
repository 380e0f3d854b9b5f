package runtime

import (
	"path/filepath"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/config"
)

// Kernel has the limits and features of the kernel.
type Kernel struct {
	// CgroupVersion is 1 or 2.
	CgroupVersion int
	// LimitsSwap: the kernel can limit the swap of a cgroup.
	LimitsSwap             bool
	MemoryBytes, SwapBytes int64
	// PodMemory is how much memory all pods together may use.
	PodMemory int64
	// SELinux is enabled.
	SELinux bool
}

// ConfigFrom returns the Config of the kubelet's configuration.
func ConfigFrom(cfg *config.Config, kernel Kernel) Config {
	kc, root := &cfg.Kubelet, cfg.Flags.RootDir
	c := Config{
		RootDir:          root,
		PodLogsDir:       kc.PodLogsDir,
		ContainerLogsDir: containerLogsDir(kc.PodLogsDir),
		SeccompRoot:      filepath.Join(root, "seccomp"),
		SeccompDefault:   cfg.SeccompDefault(),
		CPUQuota:         *kc.CPUCFSQuota,
		CPUPeriod:        kc.CPUCFSQuotaPeriod.Duration,
		MemoryCapacity:   kernel.MemoryBytes,
		DefaultSysctls:   kc.DefaultPodSysctls, // none unless its gate is on
		Swap: Swap{
			Controller: kernel.LimitsSwap,
			Limited:    kc.MemorySwap.SwapBehavior == "LimitedSwap",
			Capacity:   kernel.SwapBytes,
		},
		SELinux: kernel.SELinux,
	}
	if kernel.CgroupVersion == 2 {
		c.CgroupV2 = cgroupV2From(cfg, kernel.PodMemory)
	}
	return c
}

func cgroupV2From(cfg *config.Config, podMemory int64) *CgroupV2 {
	kc := &cfg.Kubelet
	v2 := &CgroupV2{SingleProcessOOMKill: kc.SingleProcessOOMKill != nil && *kc.SingleProcessOOMKill}
	if cfg.Features.MemoryQoS {
		v2.MemoryQOS = &MemoryQOS{
			Reserve:          kc.MemoryReservationPolicy == kubelet.TieredReservationMemoryReservationPolicy,
			ThrottlingFactor: kc.MemoryThrottlingFactor,
			Allocatable:      podMemory,
		}
	}
	return v2
}

// containerLogsDir returns the directory of the links to container logs, next to that of the pods' logs.
func containerLogsDir(podLogs string) string {
	return filepath.Join(filepath.Dir(filepath.Clean(podLogs)), "containers")
}
