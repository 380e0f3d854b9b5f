package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"swiftlet/internal/meter"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/numa"
)

// admissionBuckets are in milliseconds.
var admissionBuckets = prometheus.ExponentialBuckets(.05, 2, 15)

// Resources are the instruments of the CPU, memory and topology managers.
type Resources struct {
	Align numa.Meters
	CPUs  cpu.Meters
	// MemoryRequests and MemoryErrors count containers that need memory of NUMA nodes.
	MemoryRequests, MemoryErrors meter.Count
}

// Resources measures the allocation of exclusive resources.
func (m *Metrics) Resources() Resources {
	aligned := m.counters(kubelet+"container_aligned_compute_resources_count", "Resources given to containers that lie together, by what they were to share.", "scope", "boundary")
	failed := m.counters(kubelet+"container_aligned_compute_resources_failure_count", "Resources that could not be given so that they lie together.", "scope", "boundary")
	byScope := func(c *prometheus.CounterVec) meter.CountOf {
		return func(scope string) { c.WithLabelValues(scope, "numa_node").Inc() }
	}
	byBoundary := func(c *prometheus.CounterVec) meter.CountOf {
		return func(boundary string) { c.WithLabelValues("container", boundary).Inc() }
	}
	took := m.histogram(kubelet+"topology_manager_admission_duration_ms", "How long it took to give a pod its resources, in milliseconds.", admissionBuckets)
	return Resources{
		Align: numa.Meters{
			Requests:   m.counter(kubelet+"topology_manager_admission_requests_total", "Pods that were to be given resources.").Inc,
			Errors:     m.counter(kubelet+"topology_manager_admission_errors_total", "Pods whose resources could not be given as the policy asks.").Inc,
			Took:       func(d time.Duration) { took.Observe(float64(d.Milliseconds())) },
			Aligned:    byScope(aligned),
			Misaligned: byScope(failed),
		},
		CPUs: cpu.Meters{
			Requests:   m.counter(kubelet+"cpu_manager_pinning_requests_total", "Containers that were to have CPUs of their own.").Inc,
			Errors:     m.counter(kubelet+"cpu_manager_pinning_errors_total", "Containers that could not be given CPUs of their own.").Inc,
			Aligned:    byBoundary(aligned),
			Misaligned: byBoundary(failed),
		},
		MemoryRequests: m.counter(kubelet+"memory_manager_pinning_requests_total", "Containers that were to have memory of NUMA nodes.").Inc,
		MemoryErrors:   m.counter(kubelet+"memory_manager_pinning_errors_total", "Containers that could not be given memory of NUMA nodes.").Inc,
	}
}

var (
	exclusiveCPUs = describe(kubelet+"cpu_manager_exclusive_cpu_allocation_count", "CPUs that are given to one container.")
	sharedCPUs    = describe(kubelet+"cpu_manager_shared_pool_size_millicores", "CPUs that could be given to one container and are not, in thousandths.")
	cpusByNode    = describe(kubelet+"cpu_manager_allocation_per_numa", "CPUs that are given to one container, by NUMA node.", "numa_node")
)

// cpuCollector collects CPU allocations.
type cpuCollector func() cpu.Usage

// CPUs exposes CPU allocations, which are read on each scrape.
func (m *Metrics) CPUs(usage func() cpu.Usage) { register(m, cpuCollector(usage)) }

// Describe implements prometheus.Collector.
func (cpuCollector) Describe(to chan<- *prometheus.Desc) {
	to <- exclusiveCPUs
	to <- sharedCPUs
	to <- cpusByNode
}

// Collect implements prometheus.Collector.
func (tally cpuCollector) Collect(to chan<- prometheus.Metric) {
	t := tally()
	emit := func(d *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	emit(exclusiveCPUs, t.Exclusive)
	emit(sharedCPUs, t.Free*1000)
	for node, n := range t.ByNode {
		emit(cpusByNode, n, strconv.Itoa(node))
	}
}
