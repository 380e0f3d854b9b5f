package stats

import (
	dockercontainer "github.com/moby/moby/api/types/container"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func value(v uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: v} }

func cpu(u dockercontainer.StatsResponse, at int64) *runtimeapi.CpuUsage {
	return &runtimeapi.CpuUsage{Timestamp: at, UsageCoreNanoSeconds: value(u.CPUStats.CPUUsage.TotalUsage)}
}

// first returns the first statistic that the kernel has: names differ between cgroup v1 and v2.
func first(stats map[string]uint64, names ...string) uint64 {
	for _, name := range names {
		if v, ok := stats[name]; ok {
			return v
		}
	}
	return 0
}

// unlimited is what the kernel reports for no limit on cgroup v1, rounded down to large pages.
const unlimited = 1 << 62

func memory(u dockercontainer.StatsResponse, at int64) *runtimeapi.MemoryUsage {
	m := u.MemoryStats
	// Pages of files that were not used recently are given back first.
	working := m.Usage - min(m.Usage, first(m.Stats, "total_inactive_file", "inactive_file"))
	usage := &runtimeapi.MemoryUsage{
		Timestamp: at, UsageBytes: value(m.Usage), WorkingSetBytes: value(working),
		RssBytes:        value(first(m.Stats, "total_rss", "anon")),
		PageFaults:      value(first(m.Stats, "total_pgfault", "pgfault")),
		MajorPageFaults: value(first(m.Stats, "total_pgmajfault", "pgmajfault")),
	}
	if m.Limit > 0 && m.Limit < unlimited {
		usage.AvailableBytes = value(m.Limit - min(m.Limit, working))
	}
	return usage
}

func swap(u dockercontainer.StatsResponse, at int64) *runtimeapi.SwapUsage {
	used, ok := u.MemoryStats.Stats["total_swap"]
	if !ok {
		return nil
	}
	return &runtimeapi.SwapUsage{Timestamp: at, SwapUsageBytes: value(used)}
}
