package metrics

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/worker"
)

// counts are the counters of one name, by the values of their labels.
func counts(t *testing.T, m *Metrics, name string) map[string]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, c := range f.Metric {
			var values []string
			for _, l := range c.Label {
				values = append(values, l.GetName()+"="+l.GetValue())
			}
			if f.GetType() != dto.MetricType_COUNTER {
				t.Fatalf("%s is a %s", name, f.GetType())
			}
			all[strings.Join(values, " ")] = c.Counter.GetValue()
		}
	}
	return all
}

func newMetrics(t *testing.T) *Metrics {
	t.Helper()
	m, err := New(testclock.NewFakePassiveClock(epoch), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTerminatedContainers: each termination is counted once, also one that shows only as the
// last state.
func TestTerminatedContainers(t *testing.T) {
	m := newMetrics(t)
	changed := m.Status().Changed
	terminated := func(id string, code int32) v1.ContainerState {
		reason := "Error"
		if code == 0 {
			reason = "Completed"
		}
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: id, ExitCode: code, Reason: reason}}
	}
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	main := func(now, last v1.ContainerState) *v1.PodStatus {
		return &v1.PodStatus{
			InitContainerStatuses: []v1.ContainerStatus{{Name: "i", State: terminated("i1", 0)}},
			ContainerStatuses:     []v1.ContainerStatus{{Name: "c", State: now, LastTerminationState: last}},
		}
	}
	statuses := []*v1.PodStatus{
		{},
		main(running, v1.ContainerState{}), // the init container terminated
		main(terminated("c1", 1), v1.ContainerState{}), // the container terminated
		main(running, terminated("c1", 1)),             // the same termination
		main(running, terminated("c2", 1)),             // another one, only as the last state
		main(terminated("c3", 0), terminated("c2", 1)), // one more as the current state
		main(terminated("c3", 0), terminated("c2", 1)), // unchanged
	}
	for i := 1; i < len(statuses); i++ {
		changed(&v1.Pod{}, statuses[i-1], statuses[i])
	}
	want := map[string]float64{
		"container_type=init_container exit_code=0 reason=Completed": 1,
		"container_type=container exit_code=1 reason=Error":          2,
		"container_type=container exit_code=0 reason=Completed":      1,
	}
	if diff := cmp.Diff(want, counts(t, m, "kubelet_terminated_containers_total")); diff != "" {
		t.Error(diff)
	}
}

func TestAdmission(t *testing.T) {
	m := newMetrics(t)
	admitted := m.Admission()
	some := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	inContainer := v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: some}}}}
	inBoth := inContainer
	inBoth.Resources = &v1.ResourceRequirements{Requests: some}
	admitted(&v1.Pod{Spec: inContainer}, "")
	admitted(&v1.Pod{Spec: inBoth}, "")
	admitted(&v1.Pod{}, "")
	for _, reason := range []string{"OutOfcpu", "OutOfexample.com/gpu", "Custom"} {
		admitted(&v1.Pod{}, reason)
	}
	if diff := cmp.Diff(map[string]float64{
		"config_mode=container_level qos_class=burstable":         1,
		"config_mode=pod_and_container_level qos_class=burstable": 1,
		"config_mode= qos_class=besteffort":                       1,
	}, counts(t, m, "kubelet_pod_level_resources_admission_total")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{"reason=OutOfcpu": 1, "reason=OutOfExtendedResources": 1, "reason=Other": 1},
		counts(t, m, "kubelet_admission_rejections_total")); diff != "" {
		t.Error(diff)
	}
}

func TestImageSize(t *testing.T) {
	for bytes, want := range map[uint64]string{0: "0-10MB", 10 << 20: "0-10MB", 10<<20 + 1: "10MB-100MB", 3 << 30: "1GB-5GB", 100<<30 + 1: "GT100GB"} {
		if got := imageSizeLabel(bytes); got != want {
			t.Errorf("%d bytes: %s, want %s", bytes, got, want)
		}
	}
}

func TestCountWorking(t *testing.T) {
	got := countWorking([]worker.PodState{
		{Stage: worker.Syncing}, {Stage: worker.Syncing}, {Stage: worker.Syncing, Static: true},
		{Stage: worker.Stopping, Unwanted: true}, {Stage: worker.Ended}, {Stage: worker.Stopping, Orphan: true, Unwanted: true},
	})
	if len(got) != 15 {
		t.Errorf("%d combinations, want 15", len(got))
	}
	for s, want := range map[workingLabels]int{
		{"sync", "desired", ""}:                    2,
		{"sync", "desired", "true"}:                1,
		{"terminating", "orphan", ""}:              1,
		{"terminated", "desired", ""}:              1,
		{"terminating", "runtime_only", "unknown"}: 1,
		{"terminated", "orphan", "true"}:           0,
	} {
		if got[s] != want {
			t.Errorf("%v: %d, want %d", s, got[s], want)
		}
	}
}
