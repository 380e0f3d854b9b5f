package stats

import (
	"strings"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/config"
)

// ConfigFrom reads the settings of the configuration. ownCgroup is the cgroup of this process,
// which counts as the kubelet's unless the configuration names another.
func ConfigFrom(cfg *config.Config, nodeName string, machine Machine, ownCgroup string, now time.Time) Config {
	return Config{
		NodeName:         nodeName,
		RootDir:          cfg.Flags.RootDir,
		PodLogsDir:       cfg.Kubelet.PodLogsDir,
		VolumePeriod:     cfg.Kubelet.VolumeStatsAggPeriod.Duration,
		PSI:              cfg.Gate("KubeletPSI"),
		ExcludeHugePages: cfg.Features.HugepageAwareEviction,
		PodsFromRuntime:  cfg.Features.PodAndContainerStatsFromCRI,
		SystemCgroups:    systemCgroups(cfg, ownCgroup, now),
		Machine:          machine,
	}
}

// systemCgroups are the cgroups of system daemons.
func systemCgroups(cfg *config.Config, own string, now time.Time) []SystemCgroup {
	kubelet := cfg.Kubelet.KubeletCgroups
	if kubelet == "" {
		kubelet = own
	}
	var groups []SystemCgroup
	for _, g := range []SystemCgroup{
		{Name: statsapi.SystemContainerKubelet, Path: kubelet, Start: now},
		{Name: statsapi.SystemContainerRuntime, Path: cfg.Flags.RuntimeCgroups},
		{Name: statsapi.SystemContainerMisc, Path: cfg.Kubelet.SystemCgroups},
	} {
		if g.Path != "" && g.Path != "/" {
			g.Path = "/" + strings.Trim(g.Path, "/")
			groups = append(groups, g)
		}
	}
	return groups
}
