package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"swiftlet/internal/meter"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/numa"
)

// admissions are in milliseconds.
var admissions = prometheus.ExponentialBuckets(.05, 2, 15)

// Resources are the instruments of those who give out parts of the machine.
type Resources struct {
	Align numa.Meters
	CPUs  cpu.Meters
	// MemoryRequests and MemoryErrors count who is given memory of NUMA nodes.
	MemoryRequests, MemoryErrors meter.Count
}

// Resources counts what containers are given of the machine, and what is refused.
func (m *Metrics) Resources() Resources {
	aligned := m.counters(kubelet+"container_aligned_compute_resources_count", "Resources given to containers that lie together, by what they were to share.", "scope", "boundary")
	failed := m.counters(kubelet+"container_aligned_compute_resources_failure_count", "Resources that could not be given so that they lie together.", "scope", "boundary")
	inScope := func(c *prometheus.CounterVec) meter.CountOf {
		return func(scope string) { c.WithLabelValues(scope, "numa_node").Inc() }
	}
	inContainer := func(c *prometheus.CounterVec) meter.CountOf {
		return func(boundary string) { c.WithLabelValues("container", boundary).Inc() }
	}
	took := m.histogram(kubelet+"topology_manager_admission_duration_ms", "How long it took to give a pod its resources, in milliseconds.", admissions)
	return Resources{
		Align: numa.Meters{
			Requests:   m.counter(kubelet+"topology_manager_admission_requests_total", "Pods that were to be given resources.").Inc,
			Errors:     m.counter(kubelet+"topology_manager_admission_errors_total", "Pods whose resources could not be given as the policy asks.").Inc,
			Took:       func(d time.Duration) { took.Observe(float64(d.Milliseconds())) },
			Aligned:    inScope(aligned),
			Misaligned: inScope(failed),
		},
		CPUs: cpu.Meters{
			Requests:   m.counter(kubelet+"cpu_manager_pinning_requests_total", "Containers that were to have CPUs of their own.").Inc,
			Errors:     m.counter(kubelet+"cpu_manager_pinning_errors_total", "Containers that could not be given CPUs of their own.").Inc,
			Aligned:    inContainer(aligned),
			Misaligned: inContainer(failed),
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

// cpuTally is the collector of who has CPUs.
type cpuTally func() cpu.Tally

// CPUs shows what the tally tells, each time somebody asks.
func (m *Metrics) CPUs(tally func() cpu.Tally) { registered(m, cpuTally(tally)) }

// Describe tells the registry what there is.
func (cpuTally) Describe(to chan<- *prometheus.Desc) {
	to <- exclusiveCPUs
	to <- sharedCPUs
	to <- cpusByNode
}

// Collect reads the tally.
func (tally cpuTally) Collect(to chan<- prometheus.Metric) {
	t := tally()
	show := func(d *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	show(exclusiveCPUs, t.Exclusive)
	show(sharedCPUs, t.Free*1000)
	for node, n := range t.ByNode {
		show(cpusByNode, n, strconv.Itoa(node))
	}
}
