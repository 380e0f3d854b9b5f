package admit

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/allocation"
)

// machine has the dependencies of an Admission. It has this much CPU, and records what the
// Admission decides.
type machine struct {
	cpu       int64
	desired   map[types.UID]*v1.Pod
	active    map[types.UID]*v1.Pod
	state     *allocation.State
	admission *Admission
	decisions []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{cpu: 10, desired: map[types.UID]*v1.Pod{}, active: map[types.UID]*v1.Pod{}}
	m.start(t, m.check, nil)
	return m
}

// start creates the Admission with a check, which uses the node.
func (m *machine) start(t *testing.T, check Check, node *Node) {
	t.Helper()
	var err error
	if m.state, err = allocation.Open(filepath.Join(t.TempDir(), allocation.Allocated)); err != nil {
		t.Fatal(err)
	}
	allocator, err := allocation.New(allocation.Deps{Allocated: m.state, Check: check, Events: noEvents{}, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	m.admission, err = NewAdmission(Deps{
		Check: check, Node: node, Allocator: allocator, Workers: m, Events: noEvents{}, Log: slog.New(slog.DiscardHandler),
		Desired:  func(uid types.UID) (*v1.Pod, bool) { p, ok := m.desired[uid]; return p, ok },
		Observed: func(types.UID) (pod.Observed, bool) { return pod.Observed{}, false },
	})
	if err != nil {
		t.Fatal(err)
	}
}

type noEvents struct{}

func (noEvents) Eventf(runtime.Object, string, string, string, ...any) {}

// requesting returns a pod that requests this much CPU. The priority falls in alphabetical order.
func requesting(name string, cpu int64) *v1.Pod {
	priority := 'z' - int32(name[0])
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(name), Name: name},
		Spec: v1.PodSpec{Priority: &priority, Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}}}}},
	}
}

func cpuOf(p *v1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().Value() }

func (m *machine) check(p *v1.Pod, others []*v1.Pod) *pod.Rejection {
	sum := cpuOf(p)
	for _, o := range others {
		sum += cpuOf(o)
	}
	if sum > m.cpu {
		return pod.Reject("full", "no room")
	}
	return nil
}

func (m *machine) handle(c pod.Change, failure *pod.Failure) {
	text := fmt.Sprintf("%s %s %d", c.Op, c.Pod.Name, cpuOf(c.Pod))
	switch {
	case failure != nil:
		text += " " + failure.Reason
	case c.Op == pod.Remove:
		delete(m.active, c.Pod.UID)
	default:
		m.active[c.Pod.UID] = c.Pod
	}
	if c.Resize.Pending != nil {
		text += " " + c.Resize.Pending.Reason
	}
	m.decisions = append(m.decisions, text)
}

func (m *machine) Known(uid types.UID) bool { return m.active[uid] != nil }
func (m *machine) Active() (all []*v1.Pod) {
	for _, p := range m.active {
		all = append(all, p)
	}
	return all
}

// apply handles changes as the sync loop does.
func (m *machine) apply(changes ...pod.Change) {
	for _, c := range changes {
		m.desired[c.Pod.UID] = c.Pod
		if c.Op == pod.Remove {
			delete(m.desired, c.Pod.UID)
		}
	}
	m.admission.Admit(changes, m.handle)
	m.admission.RetryAfter(changes, m.handle)
}

func add(name string, cpu int64) pod.Change {
	return pod.Change{Op: pod.Add, Pod: requesting(name, cpu)}
}

func update(name string, cpu int64) pod.Change {
	return pod.Change{Op: pod.Update, Pod: requesting(name, cpu)}
}

func remove(name string, cpu int64) pod.Change {
	return pod.Change{Op: pod.Remove, Pod: requesting(name, cpu)}
}

func TestAdmissionOfResizes(t *testing.T) {
	for name, c := range map[string]struct {
		allocated map[types.UID]int64 // by an earlier agent
		steps     [][]pod.Change
		want      []string
	}{
		"resize_fits": {
			steps: [][]pod.Change{{add("a", 2)}, {update("a", 5)}},
			want:  []string{"add a 2", "update a 5"},
		},
		"deferred_until_another_pod_is_removed": {
			steps: [][]pod.Change{{add("a", 2), add("b", 6)}, {update("a", 5)}, {remove("b", 6)}},
			want:  []string{"add a 2", "add b 6", "update a 2 Deferred", "remove b 6", "update a 5"},
		},
		"deferred_until_another_pod_shrinks": {
			steps: [][]pod.Change{{add("a", 2), add("b", 6)}, {update("a", 5)}, {update("b", 5)}},
			want:  []string{"add a 2", "add b 6", "update a 2 Deferred", "update b 5", "update a 5"},
		},
		"deferred_resizes_retried_by_priority": {
			steps: [][]pod.Change{{add("a", 1), add("b", 1), add("c", 8)}, {update("b", 6), update("a", 6)}, {remove("c", 8)}},
			want:  []string{"add a 1", "add b 1", "add c 8", "update b 1 Deferred", "update a 1 Deferred", "remove c 8", "update a 6"},
		},
		"deferred_resize_is_reverted": {
			steps: [][]pod.Change{{add("a", 2), add("b", 6)}, {update("a", 5)}, {update("a", 2)}, {remove("b", 6)}},
			want:  []string{"add a 2", "add b 6", "update a 2 Deferred", "update a 2", "remove b 6"},
		},
		"restart_counts_allocated_resources": {
			allocated: map[types.UID]int64{"a": 2, "b": 6},
			steps:     [][]pod.Change{{add("a", 5), add("b", 6)}},
			want:      []string{"add b 6", "add a 2 Deferred"},
		},
		"restart_decides_resized_pods_last": {
			allocated: map[types.UID]int64{"a": 2, "b": 2, "c": 4},
			steps:     [][]pod.Change{{add("a", 5), add("b", 5), add("c", 4)}},
			want:      []string{"add c 4", "add a 2 Deferred", "add b 2 Deferred"},
		},
		"restart_rejects_allocation_that_does_not_fit": {
			allocated: map[types.UID]int64{"a": 6, "b": 6},
			steps:     [][]pod.Change{{add("a", 6), add("b", 1)}},
			want:      []string{"add a 6", "add b 6 full"},
		},
		"rejected_pod_has_no_allocation": {
			steps: [][]pod.Change{{add("a", 11)}, {update("a", 1)}},
			want:  []string{"add a 11 full", "update a 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			for uid, cpu := range c.allocated {
				m.state.Note(uid, pod.ResourcesOf(requesting(string(uid), cpu)))
			}
			for _, step := range c.steps {
				m.apply(step...)
			}
			if diff := cmp.Diff(c.want, m.decisions); diff != "" {
				t.Error(diff)
			}
		})
	}
}
