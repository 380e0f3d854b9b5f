package metrics

import (
	"log/slog"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// measured returns the count and the sum of a histogram without labels, or the value of a gauge.
func measured(t *testing.T, m *Metrics, name string) (count uint64, sum float64) {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			h := f.Metric[0].Histogram
			return h.GetSampleCount(), h.GetSampleSum()
		}
		return 1, f.Metric[0].Gauge.GetValue()
	}
	return 0, 0
}

// withRunningStatus is the pod as the API server shows it once its containers run.
func withRunningStatus(p *v1.Pod) *v1.Pod {
	up := p.DeepCopy()
	up.Status.StartTime = &metav1.Time{Time: epoch}
	up.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: epoch}}}}}
	return up
}

func TestStartExcludesPullsAndInit(t *testing.T) {
	clock := testclock.NewFakePassiveClock(epoch)
	m, err := New(clock, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", CreationTimestamp: metav1.Time{Time: epoch}}}
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }

	clock.SetTime(at(1))
	m.PodChanged(pod.Change{Op: pod.Add, Pod: p})
	first := m.starts.pulling("a") // 1 to 4
	clock.SetTime(at(3))
	second := m.starts.pulling("a") // 3 to 6: together they wait five seconds
	clock.SetTime(at(4))
	first()
	clock.SetTime(at(6))
	second()
	clock.SetTime(at(20))
	up := withRunningStatus(p)
	up.Status.InitContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		StartedAt: metav1.Time{Time: at(7)}, FinishedAt: metav1.Time{Time: at(10)},
	}}}}
	m.PodChanged(pod.Change{Op: pod.Reconcile, Pod: up})
	m.PodChanged(pod.Change{Op: pod.Reconcile, Pod: up}) // a start is counted once

	for name, want := range map[string]float64{
		"kubelet_pod_start_total_duration_seconds":             20,
		"kubelet_pod_start_sli_duration_seconds":               20 - 5 - 3,
		"kubelet_first_network_pod_start_sli_duration_seconds": 20 - 5 - 3,
	} {
		if count, sum := measured(t, m, name); count != 1 || sum != want {
			t.Errorf("%s: %d of %v, want 1 of %v", name, count, sum, want)
		}
	}
}

func TestStartsNotMeasured(t *testing.T) {
	newPod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", CreationTimestamp: metav1.Time{Time: epoch}}}
	for name, c := range map[string]struct {
		changes    []pod.Change
		total, sli uint64
	}{
		"ran before the kubelet started": {changes: []pod.Change{{Op: pod.Add, Pod: withRunningStatus(newPod)}, {Op: pod.Reconcile, Pod: withRunningStatus(newPod)}}},
		"not all containers running": {changes: []pod.Change{{Op: pod.Add, Pod: newPod}, {Op: pod.Reconcile, Pod: func() *v1.Pod {
			p := withRunningStatus(newPod)
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{Name: "waits"})
			return p
		}()}}},
		"pod failed": {changes: []pod.Change{{Op: pod.Add, Pod: newPod}, {Op: pod.Reconcile, Pod: func() *v1.Pod {
			p := newPod.DeepCopy()
			p.Status.Phase = v1.PodFailed
			return p
		}()}, {Op: pod.Reconcile, Pod: withRunningStatus(newPod)}}},
		"was unschedulable": {changes: []pod.Change{{Op: pod.Add, Pod: newPod}, {Op: pod.Reconcile, Pod: func() *v1.Pod {
			p := newPod.DeepCopy()
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}}
			return p
		}()}, {Op: pod.Reconcile, Pod: withRunningStatus(newPod)}}},
		"stateful volume counts in total only": {total: 1, changes: []pod.Change{{Op: pod.Add, Pod: newPod}, {Op: pod.Reconcile, Pod: func() *v1.Pod {
			p := withRunningStatus(newPod)
			p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{}}}}
			return p
		}()}}},
		"static pod by its mirror pod": {total: 1, sli: 1, changes: func() []pod.Change {
			static := newPod.DeepCopy()
			static.Annotations = map[string]string{pod.AnnotationSource: string(pod.SourceFile)}
			return []pod.Change{{Op: pod.Add, Pod: static}, {Op: pod.Reconcile, Pod: static, Mirror: withRunningStatus(newPod)}}
		}()},
	} {
		m, err := New(testclock.NewFakePassiveClock(epoch), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range c.changes {
			m.PodChanged(change)
		}
		total, _ := measured(t, m, "kubelet_pod_start_total_duration_seconds")
		sli, _ := measured(t, m, "kubelet_pod_start_sli_duration_seconds")
		if total != c.total || sli != c.sli {
			t.Errorf("%s: %d in total, %d for the SLI, want %d and %d", name, total, sli, c.total, c.sli)
		}
	}
}
