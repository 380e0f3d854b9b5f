package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/resource/allocation"
)

var (
	pendingResizes = describe(kubelet+"pod_pending_resizes", "Pods whose resize is not granted, by why and by their priority.", "reason", "priority_bucket")
	resizing       = describe(kubelet+"pod_in_progress_resizes", "Pods that do not have yet what they were given.")
)

// Allocation measures what becomes of resizes.
func (m *Metrics) Allocation() allocation.Meters {
	asked := m.counters(kubelet+"container_requested_resizes_total", "Amounts that resizes were to change.", "resource", "requirement", "operation")
	waits := m.histograms(kubelet+"pod_deferred_resize_duration_seconds", "How long resizes waited for room, by how that ended.", resizeWaits, "resolution", "priority_bucket")
	return allocation.Meters{
		Asked: func(resource, requirement, operation string) {
			asked.WithLabelValues(resource, requirement, operation).Inc()
		},
		Infeasible: count(m.counters(kubelet+"pod_infeasible_resizes_total", "Resizes that were refused for good.", "reason_detail")),
		Accepted:   count(m.counters(kubelet+"pod_deferred_accepted_resizes_total", "Resizes that were granted after a wait, by what made room.", "retry_trigger")),
		Waited: func(p *v1.Pod, resolution string, took time.Duration) {
			waits.WithLabelValues(resolution, priorityBucket(p)).Observe(took.Seconds())
		},
	}
}

// collectResizes shows the resizes that are under way.
func collectResizes(pending map[string][]*v1.Pod, underway int, show func(*prometheus.Desc, float64, ...string)) {
	type labels struct{ reason, bucket string }
	tally := map[labels]int{}
	for reason, pods := range pending {
		for _, p := range pods {
			tally[labels{strings.ToLower(reason), priorityBucket(p)}]++
		}
	}
	for l, n := range tally {
		show(pendingResizes, float64(n), l.reason, l.bucket)
	}
	show(resizing, float64(underway))
}

// priorityBucket is the reference kubelet's word for how important a pod is.
func priorityBucket(p *v1.Pod) string {
	var priority int32
	if p.Spec.Priority != nil {
		priority = *p.Spec.Priority
	}
	switch {
	case priority >= 2_000_000_000:
		return "system-critical"
	case priority >= 100_000:
		return "high"
	case priority > 0:
		return "medium"
	case priority == 0:
		return "normal"
	case priority > -1000:
		return "low"
	}
	return "very-low"
}
