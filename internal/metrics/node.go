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

// Node measures how the node came into its cluster. began is when the agent did, booted
// when the machine did, zero where that is not known.
func (m *Metrics) Node(name string, began, booted time.Time) node.Meters {
	m.gauges(kubelet+"node_name", "The node's name; always 1.", "node").WithLabelValues(name).Set(1)
	before := m.gauge(kubelet+"node_startup_pre_kubelet_duration_seconds", "From the machine's boot to the agent's start.")
	preparing := m.gauge(kubelet+"node_startup_pre_registration_duration_seconds", "From the agent's start to its first try to register a new node.")
	registering := m.gauge(kubelet+"node_startup_registration_duration_seconds", "From there until it was registered.")
	settling := m.gauge(kubelet+"node_startup_post_registration_duration_seconds", "From there until it was ready.")
	whole := m.gauge(kubelet+"node_startup_duration_seconds", "From the machine's boot until the new node was ready.")

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
				before.Set(began.Sub(booted).Seconds())
			}
			preparing.Set(tried.Sub(began).Seconds())
			registering.Set(registered.Sub(tried).Seconds())
		}),
		Ready: locked(func() {
			if registered.IsZero() { // the Node is older than this agent
				return
			}
			ready.Do(func() {
				settling.Set(m.clock.Since(registered).Seconds())
				if !booted.IsZero() {
					whole.Set(m.clock.Since(booted).Seconds())
				}
			})
		}),
	}
}

// Cgroup takes how long it took to create, update and destroy cgroups of the given version.
func (m *Metrics) Cgroup(version int) meter.TimingOf {
	m.gauge(kubelet+"cgroup_version", "The version of the kernel's cgroups, 1 or 2.").Set(float64(version))
	return secondsOf(m.histograms(kubelet+"cgroup_manager_duration_seconds", "How long operations on cgroups took.", usual, "operation_type"))
}

// VolumesMeasured takes how long the measuring of volumes took, by who did it.
func (m *Metrics) VolumesMeasured() meter.TimingOf {
	took := m.histograms(kubelet+"volume_metric_collection_duration_seconds", "How long it took to find out what a volume holds.", usual, "metric_source")
	took.WithLabelValues(stats.WalkedBy) // shown before anybody asked
	return secondsOf(took)
}

// CSI measures the calls of CSI drivers.
func (m *Metrics) CSI() func(driver, method, code string, took time.Duration) {
	calls := m.histograms("csi_operations_seconds", "How long calls of CSI drivers took.", volumeOperations, "driver_name", "method_name", "grpc_status_code", "migrated")
	return func(driver, method, code string, took time.Duration) {
		calls.WithLabelValues(driver, method, code, "false").Observe(took.Seconds())
	}
}

// Volume measures the mounting of volumes.
func (m *Metrics) Volume() volume.Meters {
	tries := m.histograms("storage_operation_duration_seconds", "How long operations on volumes took.", volumeOperations, "volume_plugin", "operation_name", "status", "migrated")
	waits := m.histograms("volume_operation_total_seconds", "How long pods waited for volumes.", volumeOperations, "plugin_name", "operation_name")
	return volume.Meters{
		Operation: func(plugin string, operation volume.Operation, took time.Duration, err error) {
			status := "success"
			if err != nil {
				status = "fail-unknown"
			}
			tries.WithLabelValues(plugin, string(operation), status, "false").Observe(took.Seconds())
		},
		Mounted: func(plugin string, took time.Duration) {
			waits.WithLabelValues(plugin, "overall_volume_mount").Observe(took.Seconds())
		},
	}
}

// Shutdown takes when the last graceful shutdown of the node began and ended.
func (m *Metrics) Shutdown() func(began, ended time.Time) {
	from := m.gauge(kubelet+"graceful_shutdown_start_time_seconds", "When the last graceful shutdown of the node began, as Unix time.")
	to := m.gauge(kubelet+"graceful_shutdown_end_time_seconds", "When the last graceful shutdown of the node ended, as Unix time.")
	return func(began, ended time.Time) {
		set := func(g prometheus.Gauge, at time.Time) {
			if !at.IsZero() {
				g.Set(float64(at.Unix()))
			}
		}
		set(from, began)
		set(to, ended)
	}
}
