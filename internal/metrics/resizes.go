package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/resource/allocation"
)

var (
	pendingResizes    = describe(kubelet+"pod_pending_resizes", "Pods whose resize is not granted, by why and by their priority.", "reason", "priority_bucket")
	inProgressResizes = describe(kubelet+"pod_in_progress_resizes", "Pods that do not have yet what they were given.")
)

// Allocation measures in-place resizes.
func (m *Metrics) Allocation() allocation.Meters {
	requested := m.counters(kubelet+"container_requested_resizes_total", "Amounts that resizes were to change.", "resource", "requirement", "operation")
	waits := m.histograms(kubelet+"pod_deferred_resize_duration_seconds", "How long resizes waited for room, by how that ended.", resizeWaitBuckets, "resolution", "priority_bucket")
	return allocation.Meters{
		Requested: func(resource, requirement, operation string) {
			requested.WithLabelValues(resource, requirement, operation).Inc()
		},
		Infeasible: incBy(m.counters(kubelet+"pod_infeasible_resizes_total", "Resizes that were refused for good.", "reason_detail")),
		Accepted:   incBy(m.counters(kubelet+"pod_deferred_accepted_resizes_total", "Resizes that were granted after a wait, by what made room.", "retry_trigger")),
		Waited: func(p *v1.Pod, resolution string, took time.Duration) {
			waits.WithLabelValues(resolution, priorityBucket(p)).Observe(took.Seconds())
		},
	}
}

// collectResizes emits the metrics of resizes that are pending or in progress.
func collectResizes(pending map[string][]*v1.Pod, inProgress int, emit func(*prometheus.Desc, float64, ...string)) {
	type labels struct{ reason, bucket string }
	counts := map[labels]int{}
	for reason, pods := range pending {
		for _, p := range pods {
			counts[labels{strings.ToLower(reason), priorityBucket(p)}]++
		}
	}
	for l, n := range counts {
		emit(pendingResizes, float64(n), l.reason, l.bucket)
	}
	emit(inProgressResizes, float64(inProgress))
}

// priorityBucket is the reference kubelet's label for the priority of a pod.
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
