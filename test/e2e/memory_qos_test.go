package e2e

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// TestMemoryQoSMetrics checks the metrics of protected memory. None is protected by default.
func TestMemoryQoSMetrics(t *testing.T) {
	t.Parallel()
	shown := scrape(t, steadyNode(t))
	for name, help := range map[string]string{
		"kubelet_memory_qos_node_memory_min_bytes": "[ALPHA] Total cgroup v2 memory.min in bytes for Guaranteed pods. This memory is hard-reserved and never reclaimed by the kernel.",
		"kubelet_memory_qos_node_memory_low_bytes": "[ALPHA] Total cgroup v2 memory.low in bytes for Burstable pods. This memory is soft-reserved and may be reclaimed under extreme pressure.",
	} {
		f := shown[name]
		if f == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if f.GetType() != dto.MetricType_GAUGE || f.GetHelp() != help || valueOf(shown, name+"{}") != 0 {
			t.Errorf("%s is a %s of %v: %s", name, f.GetType(), valueOf(shown, name+"{}"), f.GetHelp())
		}
	}
}
