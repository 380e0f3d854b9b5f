package metrics

import (
	"swiftlet/internal/resource/device"
)

// Devices measures the plugins that bring devices.
func (m *Metrics) Devices() device.Meters {
	return device.Meters{
		Registered: count(m.counters(kubelet+"device_plugin_registration_total", "How many times device plugins registered.", "resource_name")),
		Allocated:  secondsOf(m.histograms(kubelet+"device_plugin_alloc_duration_seconds", "How long device plugins took to allocate.", usual, "resource_name")),
	}
}
