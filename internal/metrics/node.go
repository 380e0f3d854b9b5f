package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"swiftlet/internal/meter"
	"swiftlet/internal/node"
	"swiftlet/internal/stats"
	"swiftlet/internal/volume"
)

// StatsFromRuntime exposes that the runtime reports the usage of pods.
func (m *Metrics) StatsFromRuntime() {
	m.gauges(kubelet+"metrics_provider", "What reports the usage of containers; always 1.", "provider").WithLabelValues("cri").Set(1)
}

// Node measures the registration of the node. started is the start time of the kubelet, booted the
// boot time of the machine, or zero if it is unknown.
func (m *Metrics) Node(name string, started, booted time.Time) node.Meters {
	m.gauges(kubelet+"node_name", "The node's name; always 1.", "node").WithLabelValues(name).Set(1)
	preKubelet := m.gauge(kubelet+"node_startup_pre_kubelet_duration_seconds", "From the machine's boot to the agent's start.")
	preRegistration := m.gauge(kubelet+"node_startup_pre_registration_duration_seconds", "From the agent's start to its first try to register a new node.")
	registration := m.gauge(kubelet+"node_startup_registration_duration_seconds", "From there until it was registered.")
	postRegistration := m.gauge(kubelet+"node_startup_post_registration_duration_seconds", "From there until it was ready.")
	total := m.gauge(kubelet+"node_startup_duration_seconds", "From the machine's boot until the new node was ready.")

	var tried, registered time.Time
	var mu sync.Mutex
	var ready sync.Once
	locked := func(f func()) meter.Count {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			f()
		}
	}
	return node.Meters{
		Registering: locked(func() {
			if tried.IsZero() {
				tried = m.clock.Now()
			}
		}),
		Registered: locked(func() {
			registered = m.clock.Now()
			if !booted.IsZero() {
				preKubelet.Set(started.Sub(booted).Seconds())
			}
			preRegistration.Set(tried.Sub(started).Seconds())
			registration.Set(registered.Sub(tried).Seconds())
		}),
		Ready: locked(func() {
			if registered.IsZero() { // the Node object existed before the kubelet started
				return
			}
			ready.Do(func() {
				postRegistration.Set(m.clock.Since(registered).Seconds())
				if !booted.IsZero() {
					total.Set(m.clock.Since(booted).Seconds())
				}
			})
		}),
	}
}

// Cgroup observes the duration of creating, updating and destroying cgroups of the given version.
func (m *Metrics) Cgroup(version int) meter.TimingOf {
	m.gauge(kubelet+"cgroup_version", "The version of the kernel's cgroups, 1 or 2.").Set(float64(version))
	return observeSecondsBy(m.histograms(kubelet+"cgroup_manager_duration_seconds", "How long operations on cgroups took.", defaultBuckets, "operation_type"))
}

// MemoryQoS shows the memory that is protected from reclaim, where the feature gate is on.
func (m *Metrics) MemoryQoS(enabled bool) func(guaranteed, burstable int64) {
	if !enabled {
		return nil
	}
	minimum := m.gauge(kubelet+"memory_qos_node_memory_min_bytes", "[ALPHA] Total cgroup v2 memory.min in bytes for Guaranteed pods. This memory is hard-reserved and never reclaimed by the kernel.")
	low := m.gauge(kubelet+"memory_qos_node_memory_low_bytes", "[ALPHA] Total cgroup v2 memory.low in bytes for Burstable pods. This memory is soft-reserved and may be reclaimed under extreme pressure.")
	return func(guaranteed, burstable int64) {
		minimum.Set(float64(guaranteed))
		low.Set(float64(burstable))
	}
}

// VolumeStats observes the duration of reading volume usage, by source.
func (m *Metrics) VolumeStats() meter.TimingOf {
	took := m.histograms(kubelet+"volume_metric_collection_duration_seconds", "How long it took to find out what a volume holds.", defaultBuckets, "metric_source")
	took.WithLabelValues(stats.WalkMethod) // exposed before the first observation
	return observeSecondsBy(took)
}

// CSI measures calls to CSI drivers.
func (m *Metrics) CSI() func(driver, method, code string, took time.Duration) {
	calls := m.histograms("csi_operations_seconds", "How long calls of CSI drivers took.", volumeOperationBuckets, "driver_name", "method_name", "grpc_status_code", "migrated")
	return func(driver, method, code string, took time.Duration) {
		calls.WithLabelValues(driver, method, code, "false").Observe(took.Seconds())
	}
}

// Volume measures the mounting of volumes.
func (m *Metrics) Volume() volume.Meters {
	operations := m.histograms("storage_operation_duration_seconds", "How long operations on volumes took.", volumeOperationBuckets, "volume_plugin", "operation_name", "status", "migrated")
	waits := m.histograms("volume_operation_total_seconds", "How long pods waited for volumes.", volumeOperationBuckets, "plugin_name", "operation_name")
	return volume.Meters{
		Operation: func(plugin string, operation volume.Operation, took time.Duration, err error) {
			status := "success"
			if err != nil {
				status = "fail-unknown"
			}
			operations.WithLabelValues(plugin, string(operation), status, "false").Observe(took.Seconds())
		},
		Mounted: func(plugin string, took time.Duration) {
			waits.WithLabelValues(plugin, "overall_volume_mount").Observe(took.Seconds())
		},
	}
}

// Shutdown records the start and the end of the last graceful node shutdown.
func (m *Metrics) Shutdown() func(start, end time.Time) {
	from := m.gauge(kubelet+"graceful_shutdown_start_time_seconds", "When the last graceful shutdown of the node began, as Unix time.")
	to := m.gauge(kubelet+"graceful_shutdown_end_time_seconds", "When the last graceful shutdown of the node ended, as Unix time.")
	return func(start, end time.Time) {
		set := func(g prometheus.Gauge, at time.Time) {
			if !at.IsZero() {
				g.Set(float64(at.Unix()))
			}
		}
		set(from, start)
		set(to, end)
	}
}
