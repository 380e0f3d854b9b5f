package admit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// labelled is a machine whose Node has one label in zones that the watch does not show yet.
type labelled struct {
	*machine
	reads int
	// read is what the API server answers; nil is the Node in zone a.
	read func(context.Context) (*v1.Node, error)
}

func inZone(zone string) *v1.Node {
	node := testNode()
	node.Labels["zone"] = zone
	node.Status.Allocatable = amounts("cpu", "10", "pods", "10")
	return node
}

// of has a change's pod select a zone.
func (l *labelled) of(zone string, c pod.Change) pod.Change {
	c.Pod.Spec.NodeSelector = map[string]string{"zone": zone}
	return c
}

// answered waits for a read of the Node and resumes.
func (l *labelled) answered() { l.admission.Resume(<-l.admission.NodeRead(), l.handle) }

func withLabels(t *testing.T, do func(l *labelled)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &labelled{machine: &machine{wanted: map[types.UID]*v1.Pod{}, active: map[types.UID]*v1.Pod{}}}
		node, err := NewNode(NodeDeps{
			Own:       func() *v1.Node { return inZone("none") },
			Watched:   func() (*v1.Node, error) { return inZone("old"), nil },
			Allocates: func(v1.ResourceName) bool { return false },
			Read: func(ctx context.Context) (*v1.Node, error) {
				l.reads++
				if l.read != nil {
					return l.read(ctx)
				}
				return inZone("a"), nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		l.start(t, Fit(node.Get, nil), node)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.admission.Run(ctx) }()
		do(l)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestHeld(t *testing.T) {
	deleted := func(name string, cpu int64) pod.Change {
		c := pod.Change{Op: pod.Delete, Pod: asking(name, cpu)}
		c.Pod.DeletionTimestamp = &metav1.Time{}
		return c
	}
	for name, c := range map[string]struct {
		do    func(l *labelled)
		want  []string
		reads int
	}{
		"the pod matches the watched node": {
			do:   func(l *labelled) { l.apply(l.of("old", add("a", 1))) },
			want: []string{"add a 1"},
		},
		"the pod matches the node that was read": {
			do:    func(l *labelled) { l.apply(l.of("a", add("a", 1))); l.answered() },
			want:  []string{"add a 1"},
			reads: 1,
		},
		"the pod matches neither": {
			do:    func(l *labelled) { l.apply(l.of("b", add("a", 1))); l.answered() },
			want:  []string{"add a 1 NodeAffinity"},
			reads: 1,
		},
		"the node cannot be read": {
			do: func(l *labelled) {
				l.read = func(context.Context) (*v1.Node, error) { return nil, errors.New("away") }
				l.apply(l.of("a", add("a", 1)))
				l.answered()
			},
			want:  []string{"add a 1 NodeAffinity"},
			reads: 1,
		},
		"resources come before labels": {
			do:    func(l *labelled) { l.apply(l.of("b", add("a", 11))); l.answered() },
			want:  []string{"add a 11 OutOfcpu"},
			reads: 1,
		},
		"others do not wait": {
			do:    func(l *labelled) { l.apply(l.of("a", add("a", 1)), add("b", 1)); l.apply(add("c", 1)); l.answered() },
			want:  []string{"add b 1", "add c 1", "add a 1"},
			reads: 1,
		},
		"one that came when the read had begun waits for another": {
			do: func(l *labelled) {
				l.apply(l.of("a", add("a", 1)))
				synctest.Wait()
				l.apply(l.of("a", add("b", 1)))
				l.answered()
				l.answered()
			},
			want:  []string{"add a 1", "add b 1"},
			reads: 2,
		},
		"one without room beside those held waits for them": {
			do:    func(l *labelled) { l.apply(l.of("a", add("a", 6)), add("b", 3), add("c", 3)); l.answered() },
			want:  []string{"add b 3", "add a 6", "add c 3 OutOfcpu"},
			reads: 1,
		},
		"one without room beside those held is admitted when they are rejected": {
			do:    func(l *labelled) { l.apply(l.of("b", add("a", 6)), add("b", 6)); l.answered() },
			want:  []string{"add a 6 NodeAffinity", "add b 6"},
			reads: 1,
		},
		"a later change takes the place of the first": {
			do:    func(l *labelled) { l.apply(l.of("a", add("a", 1))); l.apply(l.of("a", update("a", 2))); l.answered() },
			want:  []string{"add a 2"},
			reads: 1,
		},
		"a deletion does not wait": {
			do:    func(l *labelled) { l.apply(l.of("a", add("a", 1))); l.apply(l.of("a", deleted("a", 1))); l.answered() },
			want:  []string{"delete a 1"},
			reads: 1,
		},
		"a removal does not wait": {
			do:    func(l *labelled) { l.apply(l.of("a", add("a", 1))); l.apply(l.of("a", remove("a", 1))); l.answered() },
			want:  []string{"remove a 1"},
			reads: 1,
		},
		"a resize waits": {
			do: func(l *labelled) {
				l.apply(l.of("old", add("b", 1)))
				l.apply(l.of("a", update("b", 2)))
				l.answered()
			},
			want:  []string{"add b 1", "update b 2"},
			reads: 1,
		},
		"a deferred resize is not retried while it waits": {
			do: func(l *labelled) {
				l.apply(l.of("old", add("b", 1)), add("c", 9))
				l.apply(l.of("old", update("b", 2)))
				again := l.of("a", update("b", 3))
				again.Pod.Generation = 2
				l.apply(again)
				l.did = append(l.did, "read")
				l.answered()
			},
			want:  []string{"add b 1", "add c 9", "update b 1 Deferred", "read", "update b 1 Deferred"},
			reads: 1,
		},
		"a resize that an earlier agent did not do waits": {
			do: func(l *labelled) {
				l.state.Note("a", pod.ResourcesOf(asking("a", 1)))
				l.apply(l.of("a", add("a", 2)))
				l.answered()
			},
			want:  []string{"add a 2"},
			reads: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			withLabels(t, func(l *labelled) {
				c.do(l)
				if diff := cmp.Diff(c.want, l.did); diff != "" {
					t.Error(diff)
				}
				if l.reads != c.reads {
					t.Errorf("the node was read %d times, want %d", l.reads, c.reads)
				}
			})
		})
	}
}

func TestHeldNoLongerThanTheDeadline(t *testing.T) {
	withLabels(t, func(l *labelled) {
		l.read = func(ctx context.Context) (*v1.Node, error) { <-ctx.Done(); return nil, ctx.Err() }
		began := time.Now()
		l.apply(l.of("a", add("a", 1)))
		l.answered()
		if took := time.Since(began); took != readTimeout {
			t.Errorf("the pod was held for %s, want %s", took, readTimeout)
		}
		if diff := cmp.Diff([]string{"add a 1 NodeAffinity"}, l.did); diff != "" {
			t.Error(diff)
		}
	})
}
