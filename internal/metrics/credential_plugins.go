package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"swiftlet/internal/image/credentialplugin"
)

// CredentialPlugins measures credential provider plugins. It is called only if some are
// configured, so that their metrics are absent otherwise.
func (m *Metrics) CredentialPlugins() credentialplugin.Meters {
	configured := m.gauges(kubelet+"credential_provider_config_info", "What the configuration of credential plugins amounts to.", "hash")
	return credentialplugin.Meters{
		Ran:        observeSecondsBy(m.histograms(kubelet+"credential_provider_plugin_duration", "How long credential plugins ran, in seconds.", prometheus.DefBuckets, "plugin_name")),
		Failed:     incBy(m.counters(kubelet+"credential_provider_plugin_errors_total", "Runs of credential plugins that failed.", "plugin_name")),
		Configured: func(hash string) { configured.WithLabelValues(hash).Set(1) },
	}
}
