package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"swiftlet/test/cputime"
)

var now = time.Date(2026, 11, 15, 2, 0, 0, 5e8, time.UTC)

func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct{ old, now, want string }{
		"first status": {
			`{}`,
			`{phase: Pending, conditions: [{type: Ready, status: "False"}]}`,
			`{phase: Pending, startTime: "2026-11-15T02:00:00Z", observedGeneration: 3, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-11-15T02:00:00Z"}]}`},
		"transition time changes with the status only": {
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", conditions: [{type: Ready, status: "False", reason: A, lastTransitionTime: "2026-11-15T01:00:00Z"}, {type: Initialized, status: "False", lastTransitionTime: "2026-11-15T01:00:00Z"}]}`,
			`{phase: Running, conditions: [{type: Ready, status: "False", reason: B}, {type: Initialized, status: "True"}]}`,
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", observedGeneration: 3, conditions: [{type: Ready, status: "False", reason: B, lastTransitionTime: "2026-11-15T01:00:00Z"}, {type: Initialized, status: "True", lastTransitionTime: "2026-11-15T02:00:00Z"}]}`},
		"terminal phase stays and the pod is not ready": {
			`{phase: Failed, reason: Evicted, message: why, startTime: "2026-11-15T01:00:00Z"}`,
			`{phase: Running, conditions: [{type: Ready, status: "True"}]}`,
			`{phase: Failed, reason: Evicted, message: why, startTime: "2026-11-15T01:00:00Z", observedGeneration: 3, conditions: [{type: Ready, status: "False", reason: PodFailed, lastTransitionTime: "2026-11-15T02:00:00Z"}]}`},
		"terminal phase waits for running containers": {
			`{phase: Running, startTime: "2026-11-15T01:00:00Z"}`,
			`{phase: Failed, reason: Evicted, conditions: [{type: DisruptionTarget, status: "True"}], containerStatuses: [{name: c, state: {running: {}}}]}`,
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", observedGeneration: 3, containerStatuses: [{name: c, state: {running: {}}}]}`},
		"conditions of other components are kept": {
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", conditions: [{type: example.com/gate, status: "True", lastTransitionTime: "2026-11-15T01:00:00Z"}, {type: PodResizePending, status: "True"}]}`,
			`{phase: Running, conditions: [{type: Ready, status: "True"}]}`,
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", observedGeneration: 3, conditions: [{type: example.com/gate, status: "True", lastTransitionTime: "2026-11-15T01:00:00Z"}, {type: Ready, status: "True", lastTransitionTime: "2026-11-15T02:00:00Z"}]}`},
		"DisruptionTarget of another component is kept": {
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", conditions: [{type: DisruptionTarget, status: "True", reason: EvictionByEvictionAPI, lastTransitionTime: "2026-11-15T01:00:00Z"}]}`,
			`{phase: Running}`,
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", observedGeneration: 3, conditions: [{type: DisruptionTarget, status: "True", reason: EvictionByEvictionAPI, lastTransitionTime: "2026-11-15T01:00:00Z"}]}`},
		"volume health is kept while unknown": {
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", volumeHealth: [{name: v, healthConditions: [{status: Degraded, reason: Slow}]}]}`,
			`{phase: Running}`,
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", observedGeneration: 3, volumeHealth: [{name: v, healthConditions: [{status: Degraded, reason: Slow}]}]}`},
		"volume health is cleared": {
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", volumeHealth: [{name: v, healthConditions: [{status: Degraded, reason: Slow}]}]}`,
			`{phase: Running, volumeHealth: []}`,
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", observedGeneration: 3}`},
		"observed generation does not decrease": {
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", observedGeneration: 4}`,
			`{phase: Running}`,
			`{phase: Running, startTime: "2026-11-15T01:00:00Z", observedGeneration: 4}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: parseStatus(t, tc.old)}
			got := merge(p, p, p.Status, parseStatus(t, tc.now), now)
			if diff := cmp.Diff(show(t, parseStatus(t, tc.want)), show(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// show formats a status so that equal times are equal text.
func show(t *testing.T, s v1.PodStatus) string {
	t.Helper()
	text, err := yaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNormalize(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "z"}, {Name: "y"}},
		Containers:     []v1.Container{{Name: "b"}, {Name: "a"}},
	}}
	long := strings.Repeat("é", 4000)
	s := v1.PodStatus{
		StartTime:             &metav1.Time{Time: now},
		InitContainerStatuses: []v1.ContainerStatus{{Name: "y"}, {Name: "z"}},
		ContainerStatuses: []v1.ContainerStatus{
			{Name: "b", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Message: long, FinishedAt: metav1.Time{Time: now}}}},
			{Name: "a", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: now}}}},
		},
	}
	got := normalize(p, s)
	whole := now.Truncate(time.Second)
	if !got.StartTime.Time.Equal(whole) || !got.ContainerStatuses[0].State.Running.StartedAt.Time.Equal(whole) {
		t.Error("times are not whole seconds")
	}
	if got.InitContainerStatuses[0].Name != "z" || got.ContainerStatuses[0].Name != "a" {
		t.Error("containers out of order: init as in the spec, others by name")
	}
	if n := len(got.ContainerStatuses[1].State.Terminated.Message); n != maxMessages/4 {
		t.Errorf("message of %d bytes, want %d", n, maxMessages/4)
	}
	if s.ContainerStatuses[0].Name != "b" || len(s.ContainerStatuses[0].State.Terminated.Message) != len(long) {
		t.Error("the argument was changed")
	}
}

// A pod may have thousands of init containers, and statuses of other pods wait while one is normalized.
func TestManyInitContainersAreSortedQuickly(t *testing.T) {
	p, s := &v1.Pod{}, v1.PodStatus{}
	for i := range 10000 {
		name := fmt.Sprintf("c%05d", 10000-i)
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: name})
		s.InitContainerStatuses = append(s.InitContainerStatuses, v1.ContainerStatus{Name: name})
	}
	slices.Reverse(s.InitContainerStatuses)
	var sorted []v1.ContainerStatus
	cputime.AtMost(t, time.Second, func() { sorted = normalize(p, s).InitContainerStatuses })
	if first := sorted[0].Name; first != "c10000" {
		t.Errorf("%s is the first", first)
	}
}

// What the API server has of a message of any bytes counts as the same.
func TestBinaryMessageIsWrittenOnce(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
	for _, message := range []string{"a\xffb", strings.Repeat("\xff", 4096), strings.Repeat("é", 4096) + "\xc3"} {
		sent := normalize(p, v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{
			Name: "c", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Message: message}},
		}}})
		text, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		var stored v1.PodStatus
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		if !sameStatus(normalize(p, stored), sent) {
			t.Errorf("%.10q: the API server has %.40q, want %.40q", message, stored.ContainerStatuses[0].State.Terminated.Message, sent.ContainerStatuses[0].State.Terminated.Message)
		}
	}
}

func TestFinalStatus(t *testing.T) {
	const lost = `{terminated: {exitCode: 137, reason: ContainerStatusUnknown, message: The container could not be located when the pod was terminated}}`
	for name, tc := range map[string]struct{ spec, last, want string }{
		"all containers have exited": {
			`{containers: [{name: c}]}`,
			`{phase: Succeeded, containerStatuses: [{name: c, state: {terminated: {exitCode: 0}}}]}`,
			`{phase: Succeeded, containerStatuses: [{name: c, state: {terminated: {exitCode: 0}}}]}`},
		"exit of a container was not observed": {
			`{containers: [{name: c}]}`,
			`{phase: Running, containerStatuses: [{name: c, ready: true, state: {running: {}}}]}`,
			`{phase: Failed, containerStatuses: [{name: c, state: ` + lost + `}]}`},
		"first init container did not complete": {
			`{initContainers: [{name: i}, {name: j}], containers: [{name: c}]}`,
			`{phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {}}}, {name: j, state: {waiting: {}}}], containerStatuses: [{name: c, state: {waiting: {}}}]}`,
			`{phase: Failed, initContainerStatuses: [{name: i, state: ` + lost + `}, {name: j, state: {waiting: {}}}], containerStatuses: [{name: c, state: {waiting: {}}}]}`},
		"pod was initialized": {
			`{initContainers: [{name: i}], containers: [{name: c}]}`,
			`{phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}], containerStatuses: [{name: c, state: {waiting: {}}}]}`,
			`{phase: Failed, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}], containerStatuses: [{name: c, state: ` + lost + `}]}`},
		"running ephemeral container": {
			`{containers: []}`,
			`{phase: Running, ephemeralContainerStatuses: [{name: e, state: {running: {}}}]}`,
			`{phase: Failed, ephemeralContainerStatuses: [{name: e, state: ` + lost + `}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1.Pod{}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &p.Spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parseStatus(t, tc.want), finalStatus(p, parseStatus(t, tc.last))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
