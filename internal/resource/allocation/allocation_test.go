package allocation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
)

// testPod returns a pod with one container that requests this much CPU.
func testPod(cpu string, generation int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "p", Generation: generation},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}},
	}
}

// The file has exactly the reference kubelet's format.
func TestStateFileFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), Allocated)
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	setAndWrite(t, s, "100m")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"data":"{\"entries\":{\"u\":{\"ContainerResources\":{\"c\":{\"requests\":{\"cpu\":\"100m\"}}},\"PodLevelResources\":null,\"EmptyDirVolumeLimits\":null}}}","checksum":` +
		fmt.Sprint(checksum(`{"entries":{"u":{"ContainerResources":{"c":{"requests":{"cpu":"100m"}}},"PodLevelResources":null,"EmptyDirVolumeLimits":null}}}`)) + `}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if r, known := again.Get("u"); !known || cpuOf(r) != "100m" {
		t.Errorf("read back %v", r)
	}
	for name, bad := range map[string]string{"truncated": string(text[:len(text)/2]), "modified": strings.Replace(string(text), "100m", "900m", 1)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// The value was computed by the reference kubelet.
func TestChecksum(t *testing.T) {
	if got := checksum("{\"a\":\"b\\n\"}"); got != 2372237088 {
		t.Errorf("checksum is %d", got)
	}
}

// setAndWrite persists that the pod has this much CPU.
func setAndWrite(t *testing.T, s *State, cpu string) {
	t.Helper()
	s.Note("u", pod.ResourcesOf(testPod(cpu, 1)))
	if err := s.Written(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func cpuOf(r pod.Resources) string {
	requests := r.Containers["c"].Requests
	return requests.Cpu().String()
}

type recordedEvents struct{ events []string }

func (t *recordedEvents) Eventf(_ apiruntime.Object, _, reason, _ string, _ ...any) {
	t.events = append(t.events, reason)
}

// node is an allocator whose rejections a test sets.
type node struct {
	*Allocator
	recordedEvents
	state *State
	// full makes Check reject, infeasible makes Infeasible reject
	full, infeasible *pod.Rejection
	others           int
	clock            *clocktesting.FakePassiveClock
	counts           []string
}

// meters records the measurements.
func (n *node) meters() Meters {
	count := func(format string, args ...any) { n.counts = append(n.counts, fmt.Sprintf(format, args...)) }
	return Meters{
		Requested:  func(resource, requirement, operation string) { count("%s %s %s", operation, resource, requirement) },
		Infeasible: func(why string) { count("infeasible %s", why) },
		Accepted:   func(trigger string) { count("accepted %s", trigger) },
		Waited:     func(_ *v1.Pod, resolution string, took time.Duration) { count("%s after %s", resolution, took) },
	}
}

func newNode(t *testing.T) *node {
	t.Helper()
	state, err := Open(filepath.Join(t.TempDir(), Allocated))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{state: state, clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}
	n.Allocator, err = New(Deps{Allocated: state, Events: &n.recordedEvents, Clock: n.clock, Meters: n.meters(),
		Infeasible: func(_, _ *v1.Pod) *pod.Rejection { return n.infeasible },
		Check:      func(_ *v1.Pod, others []*v1.Pod) *pod.Rejection { n.others = len(others); return n.full }})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func noPods() []*v1.Pod { return nil }

func cpu(p *v1.Pod) string { return p.Spec.Containers[0].Resources.Requests.Cpu().String() }

func TestResize(t *testing.T) {
	n := newNode(t)
	n.Admit(testPod("1", 1))
	others := func() []*v1.Pod { return []*v1.Pod{testPod("1", 1), {ObjectMeta: metav1.ObjectMeta{UID: "other"}}} }
	type result struct {
		CPU      string
		Resize   pod.Resize
		Changed  bool
		Deferred int
	}
	pending := func(reason string, generation int64) pod.Resize {
		return pod.Resize{Pending: &pod.PendingResize{Reason: reason, Message: "full", Generation: generation}}
	}
	full, infeasible := pod.Reject("OutOfcpu", "full"), pod.Reject("why", "full")
	for i, step := range []struct {
		cpu        string
		generation int64
		full       *pod.Rejection
		never      *pod.Rejection
		want       result
	}{
		{"1", 1, nil, nil, result{CPU: "1"}},
		{"2", 2, full, nil, result{"1", pending("Deferred", 2), true, 1}},
		{"2", 2, full, nil, result{"1", pending("Deferred", 2), false, 1}},
		{"3", 3, nil, infeasible, result{"1", pending("Infeasible", 3), true, 0}},
		{"1", 4, nil, infeasible, result{CPU: "1", Changed: true}},
		{"2", 5, nil, nil, result{"2", pod.Resize{Granted: 5}, true, 0}},
		{"2", 5, full, nil, result{"2", pod.Resize{Granted: 5}, false, 0}},
	} {
		n.full, n.infeasible = step.full, step.never
		n.clock.SetTime(n.clock.Now().Add(time.Second))
		allocated, resize, changed := n.Resize(testPod(step.cpu, step.generation), others, "room")
		if diff := cmp.Diff(step.want, result{cpu(allocated), resize, changed, len(n.Deferred())}); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
	}
	if diff := cmp.Diff([]string{
		"increase cpu requests", "increase cpu requests", "infeasible why", "decrease cpu requests",
		"increase cpu requests",
	}, n.counts); diff != "" {
		t.Error(diff)
	}
	if n.others != 1 {
		t.Errorf("checked with %d other pods, want 1", n.others)
	}
	if diff := cmp.Diff([]string{"ResizeDeferred", "ResizeInfeasible", "ResizeStarted"}, n.events); diff != "" {
		t.Error(diff)
	}
	if err := n.state.Written(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := Open(n.state.path)
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := again.Get("u"); cpuOf(r) != "2" {
		t.Errorf("after a crash the allocation is %v", r)
	}
	n.Forget("u")
	if allocated, differ := n.Allocated(testPod("9", 6)); differ || cpu(allocated) != "9" {
		t.Error("a forgotten pod still has an allocation")
	}
}

// A deferred resize is accepted, reverted or terminated.
func TestDeferredResizeEnds(t *testing.T) {
	for end, c := range map[string]struct {
		end  func(n *node)
		want []string
	}{
		"accepted":   {func(n *node) { n.full = nil; n.Resize(testPod("2", 2), noPods, "room") }, []string{"accepted room", "accepted after 7s"}},
		"reverted":   {func(n *node) { n.Resize(testPod("1", 3), nil, "") }, []string{"decrease cpu requests", "reverted after 7s"}},
		"terminated": {func(n *node) { n.Forget("u") }, []string{"terminated after 7s"}},
	} {
		t.Run(end, func(t *testing.T) {
			n := newNode(t)
			n.Admit(testPod("1", 1))
			n.full = pod.Reject("OutOfcpu", "full")
			n.Resize(testPod("2", 2), noPods, "")
			if pending := n.Pending()[v1.PodReasonDeferred]; len(pending) != 1 {
				t.Errorf("%d pods wait", len(pending))
			}
			n.clock.SetTime(n.clock.Now().Add(7 * time.Second))
			n.counts = nil
			c.end(n)
			if diff := cmp.Diff(c.want, n.counts); diff != "" {
				t.Error(diff)
			}
			if pending := n.Pending(); len(pending) != 0 {
				t.Errorf("still pending: %v", pending)
			}
		})
	}
}

// Without PodLevel the reference kubelet persists no pod-level resources, which does not mean
// that the pod has none.
func TestPodLevel(t *testing.T) {
	p := testPod("1", 1)
	p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}}
	for _, on := range []bool{false, true} {
		n := newNode(t)
		n.deps.PodLevel = on
		n.state.Note("u", pod.ResourcesOf(testPod("1", 1)))
		allocated, differ := n.Allocated(p)
		if differ != on || (allocated.Spec.Resources == nil) != on {
			t.Errorf("PodLevel %v: differ %v, allocated %v", on, differ, allocated.Spec.Resources)
		}
	}
}

func TestCompare(t *testing.T) {
	n := newNode(t)
	n.Admit(testPod("2", 1))
	shrinks, grows := testPod("1", 1), testPod("3", 1)
	important := testPod("3", 1)
	important.Spec.Priority = new(int32)
	*important.Spec.Priority = 7
	waited := testPod("3", 1)
	waited.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, LastTransitionTime: metav1.Unix(1, 0)}}
	order := []*v1.Pod{shrinks, important, waited, grows}
	for i := range order[1:] {
		if n.compare(order[i], order[i+1]) >= 0 || n.compare(order[i+1], order[i]) <= 0 {
			t.Errorf("%d does not come before %d", i, i+1)
		}
	}
}
