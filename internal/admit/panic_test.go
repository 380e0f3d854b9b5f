package admit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// panicking is a check that panics for the pods named bad.
func (m *machine) panicking(p *v1.Pod, others []*v1.Pod) *pod.Rejection {
	if p.Name == "bad" {
		panic("broken check")
	}
	return m.check(p, others)
}

// All pods share the sync loop. A panic ends the process, and the pod is decided on again after the next start.
func TestPanicOfAdmissionHarmsItsPod(t *testing.T) {
	deleted := add("bad", 1)
	deleted.Op, deleted.Pod.DeletionTimestamp = pod.Delete, &metav1.Time{}
	for name, c := range map[string]struct {
		runs      bool
		allocated int64 // by an earlier agent
		steps     [][]pod.Change
		want      []string
	}{
		"new_pod_is_rejected": {
			steps: [][]pod.Change{{add("a", 1), add("bad", 1), add("c", 1)}},
			want:  []string{"add a 1", "add bad 1 UnexpectedAdmissionError", "add c 1"},
		},
		"running_pod_is_kept": {
			runs:  true,
			steps: [][]pod.Change{{add("bad", 1), add("c", 1)}},
			want:  []string{"add bad 1", "add c 1"},
		},
		"resize_is_dropped": {
			runs:      true,
			allocated: 1,
			steps:     [][]pod.Change{{add("bad", 1), add("c", 1)}, {update("bad", 2), update("c", 2)}},
			want:      []string{"add bad 1", "add c 1", "update c 2"},
		},
		"resized_pod_of_an_earlier_agent_is_rejected": {
			allocated: 1,
			steps:     [][]pod.Change{{add("bad", 2), add("c", 1)}},
			want:      []string{"add c 1", "add bad 2 UnexpectedAdmissionError"},
		},
		"deletion_is_passed_on": {
			runs:  true,
			steps: [][]pod.Change{{add("bad", 1)}, {deleted}, {remove("bad", 1)}},
			want:  []string{"add bad 1", "delete bad 1", "remove bad 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{cpu: 10, desired: map[types.UID]*v1.Pod{}, active: map[types.UID]*v1.Pod{}}
			m.start(t, m.panicking, nil)
			if c.runs {
				m.admission.deps.Observed = func(types.UID) (pod.Observed, bool) {
					return pod.Observed{Containers: []pod.Container{{State: pod.Running}}}, true
				}
			}
			if c.allocated > 0 {
				m.state.Note("bad", pod.ResourcesOf(requesting("bad", c.allocated)))
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
