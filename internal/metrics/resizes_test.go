package metrics

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
)

func podWithPriority(priority int32) *v1.Pod { return &v1.Pod{Spec: v1.PodSpec{Priority: &priority}} }

// The names and labels are the reference kubelet's.
func TestResizes(t *testing.T) {
	m := newMetrics(t)
	meters := m.Allocation()
	meters.Requested("cpu", "limits", "add")
	meters.Infeasible.Inc("swap_limitation")
	meters.Accepted.Inc("pods_removed")
	for name, want := range map[string]map[string]float64{
		"kubelet_container_requested_resizes_total":   {"operation=add requirement=limits resource=cpu": 1},
		"kubelet_pod_infeasible_resizes_total":        {"reason_detail=swap_limitation": 1},
		"kubelet_pod_deferred_accepted_resizes_total": {"retry_trigger=pods_removed": 1},
	} {
		if diff := cmp.Diff(want, counts(t, m, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var emitted []string
	collectResizes(map[string][]*v1.Pod{"Deferred": {podWithPriority(0), {}, podWithPriority(7)}, "Infeasible": {podWithPriority(2_000_000_000)}}, 3,
		func(d *prometheus.Desc, value float64, labels ...string) {
			name := map[*prometheus.Desc]string{pendingResizes: "pending", inProgressResizes: "resizing"}[d]
			emitted = append(emitted, fmt.Sprintf("%s%v %v", name, labels, value))
		})
	slices.Sort(emitted)
	want := []string{"pending[deferred medium] 1", "pending[deferred normal] 2", "pending[infeasible system-critical] 1", "resizing[] 3"}
	if diff := cmp.Diff(want, emitted); diff != "" {
		t.Error(diff)
	}
}

func TestPriorityBucket(t *testing.T) {
	for priority, want := range map[int32]string{
		2_000_000_000: "system-critical", 1_999_999_999: "high", 100_000: "high", 99_999: "medium", 1: "medium",
		0: "normal", -1: "low", -999: "low", -1000: "very-low",
	} {
		if got := priorityBucket(podWithPriority(priority)); got != want {
			t.Errorf("%d is %s, not %s", priority, got, want)
		}
	}
}
