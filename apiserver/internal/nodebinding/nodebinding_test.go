package nodebinding

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

func amounts(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110")}
}

func podOf(cpu string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}}}
}

// world is a binding whose informers the test fills.
type world struct {
	*Binding
	clock       *clocktesting.FakeClock
	pods, nodes cache.Indexer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	w := &world{Binding: New("lone", clock), clock: clock, pods: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), nodes: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)}
	w.Binding.pods, w.Binding.nodes = corelisters.NewPodLister(w.pods), corelisters.NewNodeLister(w.nodes)
	return w
}

func (w *world) register(t *testing.T, allocatable corev1.ResourceList) {
	t.Helper()
	if err := w.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lone"}, Status: corev1.NodeStatus{Allocatable: allocatable}}); err != nil {
		t.Fatal(err)
	}
}

// place1 is place for a pod with a CPU that a request creates.
func (w *world) place1(request int) verdict { return w.place(podOf("1"), request, "") }

func TestPodsBeforeTheNode(t *testing.T) {
	w := newWorld(t)
	if got := w.place1(1); got != early {
		t.Errorf("without a node: %v, want early", got)
	}
	w.register(t, nil)
	if got := w.place1(2); got != bound {
		t.Errorf("with a node that has not reported resources: %v, want bound", got)
	}
}

func TestPodsThatInformersHaveNotSeenCount(t *testing.T) {
	w := newWorld(t)
	w.register(t, amounts("2"))
	if got := w.place1(1); got != bound {
		t.Fatalf("first: %v, want bound", got)
	}
	w.identify(1, "u1")
	if got := w.place1(2); got != bound {
		t.Fatalf("second: %v, want bound", got)
	}
	if got := w.place1(3); got != judged {
		t.Errorf("third: %v, want judged", got)
	}
	seen := podOf("1")
	seen.Name, seen.UID, seen.Spec.NodeName = "p1", "u1", "lone"
	if err := w.pods.Add(seen); err != nil {
		t.Fatal(err)
	}
	if got := w.place1(4); got != judged {
		t.Errorf("when the first is seen: %v, want judged", got)
	}
	w.clock.Step(reservation + time.Second) // the second was never stored
	if got := w.place1(5); got != bound {
		t.Errorf("when the second is given up: %v, want bound", got)
	}
}

func TestRetryOfARequestCountsOnce(t *testing.T) {
	w := newWorld(t)
	w.register(t, amounts("1"))
	for range 2 {
		if got := w.place1(1); got != bound {
			t.Errorf("%v, want bound", got)
		}
	}
	if got := w.place1(2); got != judged {
		t.Errorf("another: %v, want judged", got)
	}
}

func TestEndedPodsDoNotCount(t *testing.T) {
	w := newWorld(t)
	w.register(t, amounts("1"))
	for i, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		p := podOf("1")
		p.Name, p.UID, p.Spec.NodeName, p.Status.Phase = strconv.Itoa(i), types.UID(strconv.Itoa(i)), "lone", phase
		if err := w.pods.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.place1(1); got != bound {
		t.Errorf("%v, want bound", got)
	}
}

func TestSchedulerJudges(t *testing.T) {
	anti := func(p *corev1.PodSpec) {
		p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "x"}}}}
	}
	for _, row := range []struct {
		name string
		pod  func(*corev1.PodSpec)
		node func(*corev1.Node)
		want bool // fits
	}{
		{name: "plain", want: true},
		{name: "claim", pod: func(p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
		}},
		{name: "device_claim", pod: func(p *corev1.PodSpec) { p.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }},
		{name: "required_anti_affinity", pod: anti},
		{name: "must_spread", pod: func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.DoNotSchedule}}
		}},
		{name: "may_spread", pod: func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway}}
		}, want: true},
		{name: "node_selector", pod: func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"a": "b"} }},
		{name: "cordoned", node: func(n *corev1.Node) { n.Spec.Unschedulable = true }},
		{name: "tainted", node: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectNoExecute}} }},
		{name: "avoided", node: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectPreferNoSchedule}} }, want: true},
		{name: "under_pressure", node: func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodePIDPressure, Status: corev1.ConditionTrue}}
		}},
		{name: "not_ready_yet", node: func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}, want: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod, node := podOf("1"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lone"}, Status: corev1.NodeStatus{Allocatable: amounts("2")}}
			if row.pod != nil {
				row.pod(&pod.Spec)
			}
			if row.node != nil {
				row.node(node)
			}
			if got := fits(pod, node, nil); got != row.want {
				t.Errorf("fits: %v, want %v", got, row.want)
			}
		})
	}
	other := podOf("0")
	anti(&other.Spec)
	if fits(podOf("1"), &corev1.Node{Status: corev1.NodeStatus{Allocatable: amounts("2")}}, []*corev1.Pod{other}) {
		t.Error("a pod fits beside one that may not tolerate it")
	}
}
