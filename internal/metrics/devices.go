package metrics

import (
	"swiftlet/internal/resource/device"
)

// Devices measures device plugins.
func (m *Metrics) Devices() device.Meters {
	return device.Meters{
		Registered: incBy(m.counters(kubelet+"device_plugin_registration_total", "How many times device plugins registered.", "resource_name")),
		Allocated:  observeSecondsBy(m.histograms(kubelet+"device_plugin_alloc_duration_seconds", "How long device plugins took to allocate.", defaultBuckets, "resource_name")),
	}
}
