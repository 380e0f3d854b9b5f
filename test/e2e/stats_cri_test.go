package e2e

import (
	"testing"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestStatsFromCRI compares the statistics that the runtime reports, with their fields, metrics and labels,
// with the recording of the reference.
func TestStatsFromCRI(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "cri-stats", `{featureGates: {PodAndContainerStatsFromCRI: true}}`)
	space := namespace(t)
	startPod(t, space, measured("measured", node.Name()))
	p := awaitStats(t, node, space, "measured", func(p *statsapi.PodStats) string {
		if p.Swap != nil {
			return "the pod has swap, which the runtime does not report"
		}
		p.Swap = &statsapi.SwapStats{}
		return complete(p)
	})
	if used, limit := *p.Containers[0].Memory.WorkingSetBytes, uint64(64<<20); used == 0 || used > limit {
		t.Errorf("the container uses %d bytes of memory, its limit is %d", used, limit)
	}
	compareSummary(t, node, space, "", "stats-summary-cri.json")
	compareSummary(t, node, space, "?only_cpu_and_memory=true", "stats-summary-cri-usage.json")
	compareScrape(t, node, "/metrics/cadvisor", "metrics-cadvisor-cri.tsv")
	compareScrape(t, node, "/metrics/resource", "metrics-resource.tsv")
	if got := seriesValue(t, scrapeNode(t, node, "/metrics")["kubelet_metrics_provider"], map[string]string{"provider": "cri"}); got != 1 {
		t.Errorf("kubelet_metrics_provider is %v", got)
	}
}
