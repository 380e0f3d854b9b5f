package probe

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func TestFirstRunsAfterARestartAreSpread(t *testing.T) {
	const pods, period = 100, 5 * time.Second
	withFakeNode(t, evenly(pods), func(f *fakeNode) {
		for i := range pods {
			f.set(name(i), 10*time.Millisecond)
			f.watch(name(i), time.Now().Add(-time.Second), nil, v1.Container{LivenessProbe: execProbe(5, 1)})
		}
		advance(3*period - time.Millisecond)
		for i := range pods {
			first := time.Duration(i) * period / pods
			if got, want := f.ran(name(i)), []time.Duration{first, first + period, first + 2*period}; !slices.Equal(got, want) {
				t.Errorf("pod %d ran at %v, want %v", i, got, want)
				return
			}
		}
	})
}

func TestFirstRun(t *testing.T) {
	ready := func(started bool) *v1.PodStatus {
		return &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c", ContainerID: "containerd://c", Ready: started, Started: &started}}}
	}
	const half = 5 * time.Second
	for name, tt := range map[string]struct {
		age       time.Duration // of the container when the agent starts
		delay     int32
		published *v1.PodStatus
		c         v1.Container
		want      []time.Duration
	}{
		"liveness_of_a_container_that_just_started":      {age: 0, c: v1.Container{LivenessProbe: execProbe(10, 1)}, want: []time.Duration{0, 10 * time.Second}},
		"liveness_after_a_restart":                       {age: time.Hour, c: v1.Container{LivenessProbe: execProbe(10, 1)}, want: []time.Duration{half, half + 10*time.Second}},
		"readiness_after_a_restart":                      {age: time.Hour, published: ready(true), c: v1.Container{ReadinessProbe: execProbe(10, 1)}, want: []time.Duration{half, half + 10*time.Second}},
		"readiness_of_an_unready_pod_after_a_restart":    {age: time.Hour, published: ready(false), c: v1.Container{ReadinessProbe: execProbe(10, 1)}, want: []time.Duration{half, half + 10*time.Second}},
		"started_a_moment_before_a_restart":              {age: time.Millisecond, c: v1.Container{ReadinessProbe: execProbe(10, 1)}, want: []time.Duration{half, half + 10*time.Second}},
		"startup_after_a_restart_then_readiness_at_once": {age: time.Hour, published: ready(false), c: v1.Container{StartupProbe: tcpProbe(10), ReadinessProbe: tcpProbe(10)}, want: []time.Duration{half, half, half + 10*time.Second}},
		"initial_delay_ends_after_the_random_part":       {age: time.Second, delay: 8, c: v1.Container{LivenessProbe: execProbe(10, 1)}, want: []time.Duration{7 * time.Second, 17 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			withFakeNode(t, func() float64 { return 0.5 }, func(f *fakeNode) {
				if p := tt.c.LivenessProbe; p != nil {
					p.InitialDelaySeconds = tt.delay
				}
				f.watch("c", time.Now().Add(-tt.age), tt.published, tt.c)
				advance(19 * time.Second)
				if got := f.ran("c"); !slices.Equal(got, tt.want) {
					t.Errorf("ran at %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// A probe that fails after a restart is reported at once: its container is not starting.
func TestFailureAfterARestartCounts(t *testing.T) {
	withFakeNode(t, func() float64 { return 0.5 }, func(f *fakeNode) {
		f.set("c", time.Hour)
		f.watch("c", time.Now().Add(-time.Hour), nil, v1.Container{ReadinessProbe: execProbe(10, 1)})
		advance(7 * time.Second)
		if got := f.events.lines(); len(got) != 1 {
			t.Errorf("events %q, want one", got)
		}
	})
}

func TestNextRunKeepsItsPhase(t *testing.T) {
	const period = 10 * time.Second
	for name, tt := range map[string]struct{ ran, ended, want time.Duration }{
		"on_time":                             {0, time.Second, period},
		"waited_for_a_slot":                   {4 * time.Second, 5 * time.Second, period},
		"waited_for_more_than_a_period":       {14 * time.Second, 15 * time.Second, 2 * period},
		"waited_for_a_period":                 {period, 11 * time.Second, 2 * period},
		"ran_for_more_than_a_period":          {0, 12 * time.Second, period},                    // due at once
		"late_and_ran_for_more_than_a_period": {12 * time.Second, 35 * time.Second, 2 * period}, // due at once
	} {
		t.Run(name, func(t *testing.T) {
			due := time.Unix(1000, 0)
			s := &state{key: key{kind: liveness}, target: Target{Probe: execProbe(10, 1)}, at: due}
			if got := s.next(due.Add(tt.ran), due.Add(tt.ended)).Sub(due); got != tt.want {
				t.Errorf("next run %v after the last was due, want %v", got, tt.want)
			}
		})
	}
}

// A runtime that hangs and then answers all calls at once must not synchronize the probes.
func TestLateRunsStaySpread(t *testing.T) {
	const pods, period, answers = 4, 5 * time.Second, 9 * time.Second
	withFakeNode(t, evenly(pods), func(f *fakeNode) {
		first := func(i int) time.Duration { return time.Duration(i) * period / pods }
		for i := range pods {
			f.set(name(i), answers-first(i))
			f.watch(name(i), time.Now().Add(-time.Hour), nil, v1.Container{LivenessProbe: execProbe(5, 60)})
		}
		advance(answers - time.Millisecond)
		for i := range pods {
			f.set(name(i), time.Millisecond)
		}
		advance(2*period + time.Millisecond)
		for i := range pods {
			// The run that became due meanwhile starts at once.
			want := []time.Duration{first(i), answers, first(i) + 2*period, first(i) + 3*period}
			if got := f.ran(name(i)); !slices.Equal(got, want) {
				t.Errorf("probe %d ran at %v, want %v", i, got, want)
			}
		}
	})
}
