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
	// set is how far the wall clock is from FakeClock, which stands for the monotonic one, setAtStart how far it was when
	// the container began.
	set, setAtStart time.Duration
}

// NewTimer returns a timer for which no one has to wait.
func (m *machine) NewTimer(d time.Duration) clock.Timer {
	timer := m.FakeClock.NewTimer(d)
	m.Step(d)
	return timer
}

// wall is a time as the kubelet sends it, in whole seconds.
func (m *machine) wall(at time.Time) metav1.Time {
	return metav1.NewTime(at.Add(m.set).Truncate(time.Second))
}

func (m *machine) read(context.Context, *corev1.Node) (*stats.Summary, error) {
	m.reads++
	used := func(began time.Time) *stats.CPUStats {
		total := uint64(m.Since(began)) / 2
		return &stats.CPUStats{Time: m.wall(m.Now()), UsageCoreNanoSeconds: &total}
	}
	memory := uint64(1 << 20)
	return &stats.Summary{
		Node: stats.NodeStats{StartTime: metav1.NewTime(began), CPU: used(began), Memory: &stats.MemoryStats{WorkingSetBytes: &memory}},
		Pods: []stats.PodStats{
			{PodRef: stats.PodReference{Namespace: "a", Name: "web"}, Containers: []stats.ContainerStats{
				{Name: "c", StartTime: metav1.NewTime(m.container.Add(m.setAtStart).Truncate(time.Second)), CPU: used(m.container), Memory: &stats.MemoryStats{WorkingSetBytes: &memory}},
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

// TestUsageAcrossClockStep: a wrong sample would have an autoscaler change the number of pods.
func TestUsageAcrossClockStep(t *testing.T) {
	for name, step := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour back": -time.Hour, "seconds back": -2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			m := &machine{FakeClock: clocktesting.NewFakeClock(began.Add(time.Hour)), container: began}
			u, web := NewUsage(m, m), types.NamespacedName{Namespace: "a", Name: "web"}
			get := func() *report {
				t.Helper()
				got, err := u.get(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			check := func(window time.Duration) {
				t.Helper()
				got := get()
				if c := got.containers[web]["c"]; c.window != window || c.nanoCores != 5e8 || got.node.window != window || got.node.nanoCores != 5e8 {
					t.Errorf("got %+v and node %+v, want half a CPU in %s", c, got.node, window)
				}
			}
			check(minWindow)
			m.Step(5500 * time.Millisecond)
			m.set = step
			check(5500 * time.Millisecond)
			m.Step(7 * time.Second)
			check(7 * time.Second)
			m.Step(9 * time.Second)
			m.container, m.setAtStart = m.Now().Add(-4*time.Second), step
			if c := get().containers[web]["c"]; c.window != 4*time.Second || c.nanoCores != 5e8 {
				t.Errorf("the container that has begun after the step uses %+v, want half a CPU in 4s", c)
			}
			m.Step(9 * time.Second)
			m.container, m.set = m.Now().Add(-3*time.Second), 3*step // the clock is set between its begin and now
			if c, found := get().containers[web]["c"]; found && c.nanoCores != 5e8 {
				t.Errorf("the container that has begun before the step uses %+v", c)
			}
		})
	}
}
