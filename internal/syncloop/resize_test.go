package syncloop

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
)

// node is all that a loop connects: it has so much CPU, and its pods want, and were given,
// some of that.
type node struct {
	cpu    int64
	wanted map[types.UID]*v1.Pod
	given  map[types.UID]int64
	active map[types.UID]*v1.Pod
	waits  map[types.UID]bool
	next   []pod.Change // what Apply will answer
	did    []string
}

func of(name string, cpu int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(name), Name: name},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}}}}},
	}
}

func ask(p *v1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().Value() }

func (n *node) fits(p *v1.Pod, others []*v1.Pod) bool {
	sum := ask(p)
	for _, o := range others {
		if o.UID != p.UID {
			sum += ask(o)
		}
	}
	return sum <= n.cpu
}

func (n *node) admit(p *v1.Pod, others []*v1.Pod) *pod.Failure {
	if !n.fits(p, others) {
		return &pod.Failure{Reason: "full"}
	}
	return nil
}

func (n *node) Given(p *v1.Pod) (*v1.Pod, bool) {
	given, known := n.given[p.UID]
	if !known || given == ask(p) {
		return p, false
	}
	return of(p.Name, given), true
}

func (n *node) Admit(p *v1.Pod) {
	if _, known := n.given[p.UID]; !known {
		n.given[p.UID] = ask(p)
	}
}

func (n *node) Resize(p *v1.Pod, others []*v1.Pod, _ string) (*v1.Pod, pod.Resize, bool) {
	given, differ := n.Given(p)
	waited := n.waits[p.UID]
	n.waits[p.UID] = differ && !n.fits(p, others)
	switch {
	case !differ:
		return p, pod.Resize{}, waited
	case n.waits[p.UID]:
		return given, pod.Resize{Pending: &pod.PendingResize{Reason: v1.PodReasonDeferred}}, !waited
	}
	n.given[p.UID] = ask(p)
	return p, pod.Resize{Granted: 1}, true
}

func (n *node) Deferred() (all []types.UID) {
	for uid, waits := range n.waits {
		if waits {
			all = append(all, uid)
		}
	}
	return all
}

func (n *node) Turn(p, q *v1.Pod) int { return strings.Compare(p.Name, q.Name) }

func (n *node) Handle(c pod.Change, failure *pod.Failure) {
	text := fmt.Sprintf("%s %s %d", c.Op, c.Pod.Name, ask(c.Pod))
	switch {
	case failure != nil:
		text += " " + failure.Reason
	case c.Op == pod.Remove:
		delete(n.active, c.Pod.UID)
	default:
		n.active[c.Pod.UID] = c.Pod
	}
	if c.Resize.Pending != nil {
		text += " " + c.Resize.Pending.Reason
	}
	n.did = append(n.did, text)
}

func (n *node) Wake(types.UID)           {}
func (n *node) Orphan(pod.Ref)           {}
func (n *node) Known(uid types.UID) bool { return n.active[uid] != nil }
func (n *node) Active() (all []*v1.Pod) {
	for _, p := range n.active {
		all = append(all, p)
	}
	return all
}

func (n *node) Apply(pod.Snapshot) []pod.Change {
	for _, c := range n.next {
		n.wanted[c.Pod.UID] = c.Pod
		if c.Op == pod.Remove {
			delete(n.wanted, c.Pod.UID)
		}
	}
	return n.next
}

type desired struct{ *node }

func (desired) Ready() bool                         { return true }
func (d desired) Get(uid types.UID) (*v1.Pod, bool) { p, ok := d.wanted[uid]; return p, ok }

type observer struct{}

func (observer) Synced() <-chan struct{}            { return nil }
func (observer) Changes() <-chan types.UID          { return nil }
func (observer) Get(types.UID) (pod.Observed, bool) { return pod.Observed{}, false }
func (observer) List() []pod.Observed               { return nil }

func TestResize(t *testing.T) {
	add := func(name string, cpu int64) pod.Change { return pod.Change{Op: pod.Add, Pod: of(name, cpu)} }
	update := func(name string, cpu int64) pod.Change { return pod.Change{Op: pod.Update, Pod: of(name, cpu)} }
	remove := func(name string, cpu int64) pod.Change { return pod.Change{Op: pod.Remove, Pod: of(name, cpu)} }
	for name, c := range map[string]struct {
		given map[types.UID]int64 // by an earlier agent
		steps [][]pod.Change
		want  []string
	}{
		"there is room": {
			steps: [][]pod.Change{{add("a", 2)}, {update("a", 5)}},
			want:  []string{"add a 2", "update a 5"},
		},
		"one waits until another goes": {
			steps: [][]pod.Change{{add("a", 2), add("b", 6)}, {update("a", 5)}, {remove("b", 6)}},
			want:  []string{"add a 2", "add b 6", "update a 2 Deferred", "remove b 6", "update a 5"},
		},
		"one waits until another shrinks": {
			steps: [][]pod.Change{{add("a", 2), add("b", 6)}, {update("a", 5)}, {update("b", 5)}},
			want:  []string{"add a 2", "add b 6", "update a 2 Deferred", "update b 5", "update a 5"},
		},
		"in turn, as far as there is room": {
			steps: [][]pod.Change{{add("a", 1), add("b", 1), add("c", 8)}, {update("b", 6), update("a", 6)}, {remove("c", 8)}},
			want:  []string{"add a 1", "add b 1", "add c 8", "update b 1 Deferred", "update a 1 Deferred", "remove c 8", "update a 6"},
		},
		"who waits takes it back": {
			steps: [][]pod.Change{{add("a", 2), add("b", 6)}, {update("a", 5)}, {update("a", 2)}, {remove("b", 6)}},
			want:  []string{"add a 2", "add b 6", "update a 2 Deferred", "update a 2", "remove b 6"},
		},
		"a new agent counts what was given": {
			given: map[types.UID]int64{"a": 2, "b": 6},
			steps: [][]pod.Change{{add("a", 5), add("b", 6)}},
			want:  []string{"add b 6", "add a 2 Deferred"},
		},
		"to a new agent others come first": {
			given: map[types.UID]int64{"a": 2, "b": 2, "c": 4},
			steps: [][]pod.Change{{add("a", 5), add("b", 5), add("c", 4)}},
			want:  []string{"add c 4", "add a 2 Deferred", "add b 2 Deferred"},
		},
		"a new agent refuses what does not fit as given": {
			given: map[types.UID]int64{"a": 6, "b": 6},
			steps: [][]pod.Change{{add("a", 6), add("b", 1)}},
			want:  []string{"add a 6", "add b 6 full"},
		},
		"one that was sent away is given nothing": {
			steps: [][]pod.Change{{add("a", 11)}, {update("a", 1)}},
			want:  []string{"add a 11 full", "update a 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{cpu: 10, wanted: map[types.UID]*v1.Pod{}, given: map[types.UID]int64{}, active: map[types.UID]*v1.Pod{}, waits: map[types.UID]bool{}}
			maps.Copy(n.given, c.given)
			loop, err := New(Deps{
				Snapshots: make(chan pod.Snapshot), Desired: desired{n}, Observer: observer{}, Workers: n, Allocator: n, Admit: n.admit,
				Housekeep: func(context.Context) {}, Clock: clocktesting.NewFakeClock(metav1.Now().Time), Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, n.next = range c.steps {
				loop.apply(t.Context(), pod.Snapshot{})
			}
			if diff := cmp.Diff(c.want, n.did); diff != "" {
				t.Error(diff)
			}
		})
	}
}
