package stats

import (
	"strings"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/config"
)

// ConfigFrom reads the settings of the configuration. ownGroup is the cgroup of this process,
// which counts as the kubelet's unless the configuration names another.
func ConfigFrom(cfg *config.Config, nodeName string, machine Machine, ownGroup string, now time.Time) Config {
	return Config{
		NodeName:        nodeName,
		RootDir:         cfg.Flags.RootDir,
		PodLogsDir:      cfg.Kubelet.PodLogsDir,
		VolumePeriod:    cfg.Kubelet.VolumeStatsAggPeriod.Duration,
		Pressure:        cfg.Gate("KubeletPSI"),
		SparesHugePages: cfg.Features.HugepageAwareEviction,
		System:          systemGroups(cfg, ownGroup, now),
		Machine:         machine,
	}
}

// systemGroups are the cgroups of system daemons.
func systemGroups(cfg *config.Config, own string, now time.Time) []SystemGroup {
	kubelet := cfg.Kubelet.KubeletCgroups
	if kubelet == "" {
		kubelet = own
	}
	var groups []SystemGroup
	for _, g := range []SystemGroup{
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
