package resourcemetrics

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

var began = time.Unix(1e9, 0)

// machine is a node on which a container uses half a CPU since it began.
type machine struct {
	*clocktesting.FakeClock
	reads     int
	container time.Time // when it began
	err       error
}

// NewTimer returns a timer for which no one has to wait.
func (m *machine) NewTimer(d time.Duration) clock.Timer {
	timer := m.FakeClock.NewTimer(d)
	m.Step(d)
	return timer
}

func (m *machine) read(context.Context, *corev1.Node) (*stats.Summary, error) {
	m.reads++
	used := func(began time.Time) *stats.CPUStats {
		total := uint64(m.Since(began)) / 2
		return &stats.CPUStats{Time: metav1.NewTime(m.Now()), UsageCoreNanoSeconds: &total}
	}
	memory := uint64(1 << 20)
	return &stats.Summary{
		Node: stats.NodeStats{StartTime: metav1.NewTime(began), CPU: used(began), Memory: &stats.MemoryStats{WorkingSetBytes: &memory}},
		Pods: []stats.PodStats{
			{PodRef: stats.PodReference{Namespace: "a", Name: "web"}, Containers: []stats.ContainerStats{
				{Name: "c", StartTime: metav1.NewTime(m.container), CPU: used(m.container), Memory: &stats.MemoryStats{WorkingSetBytes: &memory}},
				{Name: "ended", StartTime: metav1.NewTime(began)},
			}},
			{PodRef: stats.PodReference{Namespace: "a", Name: "ended"}},
		},
	}, m.err
}

func TestUsage(t *testing.T) {
	m := &machine{FakeClock: clocktesting.NewFakeClock(began.Add(time.Hour)), container: began}
	u := NewUsage(m, m)
	web := types.NamespacedName{Namespace: "a", Name: "web"}
	for _, step := range []struct {
		name   string
		do     func()
		reads  int
		window time.Duration
	}{
		{"first_answer_takes_two_readings", func() {}, 2, minWindow},
		{"next_takes_one", func() { m.Step(5 * time.Second) }, 1, 5 * time.Second},
		{"at_once", func() { m.Step(time.Millisecond) }, 1, 5*time.Second + time.Millisecond},
		{"much_later", func() { m.Step(time.Hour) }, 2, minWindow},
		{"container_that_has_restarted", func() { m.Step(10 * time.Second); m.container = m.Now().Add(-4 * time.Second) }, 1, 4 * time.Second},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			m.reads = 0
			got, err := u.get(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			c := got.containers[web]["c"]
			if m.reads != step.reads || c.window != step.window || c.nanoCores != 5e8 || c.memory != 1<<20 {
				t.Errorf("%d readings, %+v; want %d, half a CPU in %s", m.reads, c, step.reads, step.window)
			}
			if got.node.nanoCores != 5e8 || len(got.containers) != 1 || len(got.containers[web]) != 1 {
				t.Errorf("got %+v", got)
			}
		})
	}
	m.err = errors.New("no kubelet")
	if _, err := u.get(t.Context(), nil); !errors.Is(err, m.err) {
		t.Errorf("got error %v", err)
	}
}
