package stats

import (
	"slices"
	"strings"
	"time"
)

// putFunc writes one line of a family.
type putFunc = func(value float64, at time.Time, labels ...string)

// cadvisorFamilies are the metric families of cgroups, ordered by name. The help texts are
// cAdvisor's, because people search for them.
func cadvisorFamilies() []family {
	all := slices.Concat(cpuFamilies(), memoryFamilies(), pressureFamilies(), taskFamilies(), specFamilies(), diskFamilies(), networkFamilies())
	slices.SortFunc(all, func(a, b family) int { return strings.Compare(a.name, b.name) })
	return all
}

// perGroup is a family with one line for each cgroup.
func perGroup(kind, name, help string, value func(*series) float64) family {
	return family{name, kind, help, func(put putFunc, s *series) {
		put(value(s), s.at, s.head, s.middle, s.tail)
	}}
}

// perGroupIf is a family with one line for each cgroup that include selects.
func perGroupIf(kind, name, help string, include func(*series) bool, value func(*series) float64) family {
	return family{name, kind, help, func(put putFunc, s *series) {
		if include(s) {
			put(value(s), s.at, s.head, s.middle, s.tail)
		}
	}}
}

func seconds(nanos uint64) float64 { return float64(nanos) / float64(time.Second) }

func cpuFamilies() []family {
	hasQuota := func(s *series) bool { return s.cpu.quota != 0 }
	return []family{
		perGroupIf("counter", "container_cpu_cfs_burst_periods_total", "Number of periods when burst occurs.", hasQuota,
			func(s *series) float64 { return float64(s.cpu.burstPeriods) }),
		perGroupIf("counter", "container_cpu_cfs_burst_seconds_total", "Total time duration the container has been bursted.", hasQuota,
			func(s *series) float64 { return seconds(s.cpu.burstTime) }),
		perGroupIf("counter", "container_cpu_cfs_periods_total", "Number of elapsed enforcement period intervals.", hasQuota,
			func(s *series) float64 { return float64(s.cpu.periods) }),
		perGroupIf("counter", "container_cpu_cfs_throttled_periods_total", "Number of throttled period intervals.", hasQuota,
			func(s *series) float64 { return float64(s.cpu.throttledPeriods) }),
		perGroupIf("counter", "container_cpu_cfs_throttled_seconds_total", "Total time duration the container has been throttled.", hasQuota,
			func(s *series) float64 { return seconds(s.cpu.throttledTime) }),
		perGroup("counter", "container_cpu_system_seconds_total", "Cumulative system cpu time consumed in seconds.",
			func(s *series) float64 { return seconds(s.cpu.system) }),
		{"container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.", func(put putFunc, s *series) {
			put(seconds(s.cpu.total), s.at, s.head, `cpu="total",`, s.middle, s.tail)
		}},
		perGroup("counter", "container_cpu_user_seconds_total", "Cumulative user cpu time consumed in seconds.",
			func(s *series) float64 { return seconds(s.cpu.user) }),
	}
}

func memoryFamilies() []family {
	gauge := func(name, help string, pick func(*memoryUsage) uint64) family {
		return perGroup("gauge", name, help, func(s *series) float64 { return float64(pick(&s.memory)) })
	}
	counter := func(name, help string, pick func(*memoryUsage) uint64) family {
		return perGroup("counter", name, help, func(s *series) float64 { return float64(pick(&s.memory)) })
	}
	return []family{
		gauge("container_memory_cache", "Number of bytes of page cache memory.", func(m *memoryUsage) uint64 { return m.cache }),
		counter("container_memory_events_high_total", "Cumulative count of memory.high throttle events for the container", func(m *memoryUsage) uint64 { return m.eventsHigh }),
		counter("container_memory_events_max_total", "Cumulative count of memory.max limit hit events for the container", func(m *memoryUsage) uint64 { return m.eventsMax }),
		counter("container_memory_failcnt", "Number of memory usage hits limits", func(m *memoryUsage) uint64 { return m.hitLimit }),
		{"container_memory_failures_total", "counter", "Cumulative count of memory allocation failures.", func(put putFunc, s *series) {
			m := &s.memory
			put(float64(m.ownPgfault), s.at, s.head, `failure_type="pgfault",`, s.middle, s.tail, `,scope="container"`)
			put(float64(m.pgfault), s.at, s.head, `failure_type="pgfault",`, s.middle, s.tail, `,scope="hierarchy"`)
			put(float64(m.ownPgmajfault), s.at, s.head, `failure_type="pgmajfault",`, s.middle, s.tail, `,scope="container"`)
			put(float64(m.pgmajfault), s.at, s.head, `failure_type="pgmajfault",`, s.middle, s.tail, `,scope="hierarchy"`)
		}},
		gauge("container_memory_file_dirty_bytes", "Number of bytes of file cache that has been modified but not yet written back to disk.", func(m *memoryUsage) uint64 { return m.dirty }),
		gauge("container_memory_file_writeback_bytes", "Number of bytes of file cache that is currently being written back to disk.", func(m *memoryUsage) uint64 { return m.writeback }),
		gauge("container_memory_kernel_usage", "Size of kernel memory allocated in bytes.", func(m *memoryUsage) uint64 { return m.kernel }),
		gauge("container_memory_mapped_file", "Size of memory mapped files in bytes.", func(m *memoryUsage) uint64 { return m.mapped }),
		gauge("container_memory_max_usage_bytes", "Maximum memory usage recorded in bytes", func(m *memoryUsage) uint64 { return m.peak }),
		counter("container_memory_pgscan_total", "Cumulative number of pages scanned by the page reclaim algorithm.", func(m *memoryUsage) uint64 { return m.pgscan }),
		counter("container_memory_pgsteal_total", "Cumulative number of pages reclaimed by the page reclaim algorithm.", func(m *memoryUsage) uint64 { return m.pgsteal }),
		gauge("container_memory_rss", "Size of RSS in bytes.", func(m *memoryUsage) uint64 { return m.rss }),
		gauge("container_memory_swap", "Container swap usage in bytes.", func(m *memoryUsage) uint64 { return m.swap }),
		gauge("container_memory_total_active_file_bytes", "Current total active file in bytes.", func(m *memoryUsage) uint64 { return m.activeFile }),
		gauge("container_memory_total_inactive_file_bytes", "Current total inactive file in bytes.", func(m *memoryUsage) uint64 { return m.inactiveFile }),
		gauge("container_memory_usage_bytes", "Current memory usage in bytes, including all memory regardless of when it was accessed", func(m *memoryUsage) uint64 { return m.usage }),
		gauge("container_memory_working_set_bytes", "Current working set in bytes.", func(m *memoryUsage) uint64 { return m.workingSet }),
		counter("container_memory_workingset_refault_anon_total", "Cumulative number of refaults of previously evicted anonymous pages.", func(m *memoryUsage) uint64 { return m.refaultAnon }),
		counter("container_memory_workingset_refault_file_total", "Cumulative number of refaults of previously evicted file pages.", func(m *memoryUsage) uint64 { return m.refaultFile }),
		counter("container_oom_events_total", "Count of out of memory events observed for the container", func(m *memoryUsage) uint64 { return m.ooms }),
	}
}

// pressureFamilies have lines only if the kernel reports pressure stall information.
func pressureFamilies() []family {
	of := func(name, help string, total func(*pressure) uint64) family {
		return perGroupIf("counter", name, help, func(s *series) bool { return s.pressure != nil },
			func(s *series) float64 { return float64(total(s.pressure)) / 1e6 })
	}
	const stalled, waiting = "Total time duration no tasks in the container could make progress due to ", "Total time duration tasks in the container have waited due to "
	return []family{
		of("container_pressure_cpu_stalled_seconds_total", stalled+"CPU congestion.", func(p *pressure) uint64 { return p.cpu.Full.Total }),
		of("container_pressure_cpu_waiting_seconds_total", waiting+"CPU congestion.", func(p *pressure) uint64 { return p.cpu.Some.Total }),
		of("container_pressure_io_stalled_seconds_total", stalled+"IO congestion.", func(p *pressure) uint64 { return p.io.Full.Total }),
		of("container_pressure_io_waiting_seconds_total", waiting+"IO congestion.", func(p *pressure) uint64 { return p.io.Some.Total }),
		of("container_pressure_memory_stalled_seconds_total", stalled+"memory congestion.", func(p *pressure) uint64 { return p.memory.Full.Total }),
		of("container_pressure_memory_waiting_seconds_total", waiting+"memory congestion.", func(p *pressure) uint64 { return p.memory.Some.Total }),
	}
}
