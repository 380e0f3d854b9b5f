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

// labelled is a machine whose Node has a zone label that the informer does not have yet.
type labelled struct {
	*machine
	reads int
	// read reads the Node; nil returns one in zone a.
	read func(context.Context) (*v1.Node, error)
}

func inZone(zone string) *v1.Node {
	node := testNode()
	node.Labels["zone"] = zone
	node.Status.Allocatable = amounts("cpu", "10", "pods", "10")
	return node
}

// selecting returns the change with a node selector for a zone.
func (l *labelled) selecting(zone string, c pod.Change) pod.Change {
	c.Pod.Spec.NodeSelector = map[string]string{"zone": zone}
	return c
}

// resume waits for a read of the Node and resumes.
func (l *labelled) resume() { l.admission.Resume(<-l.admission.NodeRead(), l.handle) }

func withLabels(t *testing.T, do func(l *labelled)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &labelled{machine: &machine{desired: map[types.UID]*v1.Pod{}, active: map[types.UID]*v1.Pod{}}}
		node, err := NewNode(NodeDeps{
			Local:    func() *v1.Node { return inZone("none") },
			Watched:  func() (*v1.Node, error) { return inZone("old"), nil },
			IsDevice: func(v1.ResourceName) bool { return false },
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
		done := make(chan error)
		go func() { done <- l.admission.Run(ctx) }()
		do(l)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestHeldChanges(t *testing.T) {
	deleted := func(name string, cpu int64) pod.Change {
		c := pod.Change{Op: pod.Delete, Pod: requesting(name, cpu)}
		c.Pod.DeletionTimestamp = &metav1.Time{}
		return c
	}
	for name, c := range map[string]struct {
		do    func(l *labelled)
		want  []string
		reads int
	}{
		"pod_matches_watched_node": {
			do:   func(l *labelled) { l.apply(l.selecting("old", add("a", 1))) },
			want: []string{"add a 1"},
		},
		"pod_matches_node_that_was_read": {
			do:    func(l *labelled) { l.apply(l.selecting("a", add("a", 1))); l.resume() },
			want:  []string{"add a 1"},
			reads: 1,
		},
		"pod_matches_neither_node": {
			do:    func(l *labelled) { l.apply(l.selecting("b", add("a", 1))); l.resume() },
			want:  []string{"add a 1 NodeAffinity"},
			reads: 1,
		},
		"read_fails": {
			do: func(l *labelled) {
				l.read = func(context.Context) (*v1.Node, error) { return nil, errors.New("unreachable") }
				l.apply(l.selecting("a", add("a", 1)))
				l.resume()
			},
			want:  []string{"add a 1 NodeAffinity"},
			reads: 1,
		},
		"resources_reported_before_labels": {
			do:    func(l *labelled) { l.apply(l.selecting("b", add("a", 11))); l.resume() },
			want:  []string{"add a 11 OutOfcpu"},
			reads: 1,
		},
		"other_pods_are_not_held": {
			do: func(l *labelled) {
				l.apply(l.selecting("a", add("a", 1)), add("b", 1))
				l.apply(add("c", 1))
				l.resume()
			},
			want:  []string{"add b 1", "add c 1", "add a 1"},
			reads: 1,
		},
		"pod_added_during_read_waits_for_next_read": {
			do: func(l *labelled) {
				l.apply(l.selecting("a", add("a", 1)))
				synctest.Wait()
				l.apply(l.selecting("a", add("b", 1)))
				l.resume()
				l.resume()
			},
			want:  []string{"add a 1", "add b 1"},
			reads: 2,
		},
		"held_if_no_room_with_held_pods": {
			do:    func(l *labelled) { l.apply(l.selecting("a", add("a", 6)), add("b", 3), add("c", 3)); l.resume() },
			want:  []string{"add b 3", "add a 6", "add c 3 OutOfcpu"},
			reads: 1,
		},
		"admitted_after_held_pod_is_rejected": {
			do:    func(l *labelled) { l.apply(l.selecting("b", add("a", 6)), add("b", 6)); l.resume() },
			want:  []string{"add a 6 NodeAffinity", "add b 6"},
			reads: 1,
		},
		"later_change_replaces_held_one": {
			do: func(l *labelled) {
				l.apply(l.selecting("a", add("a", 1)))
				l.apply(l.selecting("a", update("a", 2)))
				l.resume()
			},
			want:  []string{"add a 2"},
			reads: 1,
		},
		"deletion_is_not_held": {
			do: func(l *labelled) {
				l.apply(l.selecting("a", add("a", 1)))
				l.apply(l.selecting("a", deleted("a", 1)))
				l.resume()
			},
			want:  []string{"delete a 1"},
			reads: 1,
		},
		"removal_is_not_held": {
			do: func(l *labelled) {
				l.apply(l.selecting("a", add("a", 1)))
				l.apply(l.selecting("a", remove("a", 1)))
				l.resume()
			},
			want:  []string{"remove a 1"},
			reads: 1,
		},
		"resize_is_held": {
			do: func(l *labelled) {
				l.apply(l.selecting("old", add("b", 1)))
				l.apply(l.selecting("a", update("b", 2)))
				l.resume()
			},
			want:  []string{"add b 1", "update b 2"},
			reads: 1,
		},
		"deferred_resize_is_not_retried_while_held": {
			do: func(l *labelled) {
				l.apply(l.selecting("old", add("b", 1)), add("c", 9))
				l.apply(l.selecting("old", update("b", 2)))
				second := l.selecting("a", update("b", 3))
				second.Pod.Generation = 2
				l.apply(second)
				l.decisions = append(l.decisions, "read")
				l.resume()
			},
			want:  []string{"add b 1", "add c 9", "update b 1 Deferred", "read", "update b 1 Deferred"},
			reads: 1,
		},
		"resize_pending_at_restart_is_held": {
			do: func(l *labelled) {
				l.state.Note("a", pod.ResourcesOf(requesting("a", 1)))
				l.apply(l.selecting("a", add("a", 2)))
				l.resume()
			},
			want:  []string{"add a 2"},
			reads: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			withLabels(t, func(l *labelled) {
				c.do(l)
				if diff := cmp.Diff(c.want, l.decisions); diff != "" {
					t.Error(diff)
				}
				if l.reads != c.reads {
					t.Errorf("the node was read %d times, want %d", l.reads, c.reads)
				}
			})
		})
	}
}

func TestHoldEndsAfterReadTimeout(t *testing.T) {
	withLabels(t, func(l *labelled) {
		l.read = func(ctx context.Context) (*v1.Node, error) { <-ctx.Done(); return nil, ctx.Err() }
		began := time.Now()
		l.apply(l.selecting("a", add("a", 1)))
		l.resume()
		if took := time.Since(began); took != readTimeout {
			t.Errorf("the pod was held for %s, want %s", took, readTimeout)
		}
		if diff := cmp.Diff([]string{"add a 1 NodeAffinity"}, l.decisions); diff != "" {
			t.Error(diff)
		}
	})
}
