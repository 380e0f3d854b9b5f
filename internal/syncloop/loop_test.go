package syncloop

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
)

// node implements all dependencies of a loop. It admits every pod.
type node struct {
	desired map[types.UID]bool
	next    []pod.Change // what Apply returns
	read    chan *v1.Node
	calls   []string
}

func (n *node) Apply(pod.Snapshot) []pod.Change {
	for _, c := range n.next {
		n.desired[c.Pod.UID] = true
	}
	return n.next
}

func (n *node) Ready() bool                   { return true }
func (n *node) Get(types.UID) (*v1.Pod, bool) { return nil, false }
func (n *node) Wake(types.UID)                {}
func (n *node) Orphan(pod.Ref)                {}
func (n *node) Known(types.UID) bool          { return false }
func (n *node) Handle(c pod.Change, _ *pod.Failure) {
	n.calls = append(n.calls, c.Op.String()+" "+c.Pod.Name)
}

func (n *node) Admit(changes []pod.Change, handle func(pod.Change, *pod.Failure)) {
	for _, c := range changes {
		handle(c, nil)
	}
}

func (n *node) NodeRead() <-chan *v1.Node { return n.read }
func (n *node) Resume(_ *v1.Node, handle func(pod.Change, *pod.Failure)) []pod.Change {
	for _, c := range n.next {
		handle(c, nil)
	}
	return n.next
}

func (n *node) RetryAfter([]pod.Change, func(pod.Change, *pod.Failure)) {
	n.calls = append(n.calls, "retry")
}
func (n *node) RetryPeriodic(func(pod.Change, *pod.Failure)) { n.calls = append(n.calls, "periodic") }

type observer struct{}

var synced = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (observer) Synced() <-chan struct{}            { return synced }
func (observer) Changes() <-chan types.UID          { return nil }
func (observer) Get(types.UID) (pod.Observed, bool) { return pod.Observed{}, false }
func (observer) List() []pod.Observed               { return nil }

func TestRelistedBeforeChangesAreHandled(t *testing.T) {
	n := &node{desired: map[types.UID]bool{}}
	loop, err := New(Deps{
		Snapshots: make(chan pod.Snapshot), Desired: n, Observer: observer{}, Workers: n, Admission: n,
		OnRelist: func() {
			if !n.desired["a"] {
				t.Error("called before the list was applied")
			}
			n.calls = append(n.calls, "relisted")
		},
		Housekeep: func(context.Context) {}, Clock: clocktesting.NewFakeClock(metav1.Now().Time), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	a := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", Name: "a"}}
	n.next = []pod.Change{{Op: pod.Add, Pod: a}}
	loop.apply(t.Context(), pod.Snapshot{Listed: true})
	n.next = []pod.Change{{Op: pod.Update, Pod: a}}
	loop.apply(t.Context(), pod.Snapshot{})
	if diff := cmp.Diff([]string{"relisted", "add a", "periodic", "update a", "retry"}, n.calls); diff != "" {
		t.Error(diff)
	}
}

func TestResumesAfterNodeIsRead(t *testing.T) {
	n := &node{read: make(chan *v1.Node)}
	n.next = []pod.Change{{Op: pod.Add, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", Name: "a"}}}}
	loop, err := New(Deps{
		Snapshots: make(chan pod.Snapshot), Desired: n, Observer: observer{}, Workers: n, Admission: n,
		Housekeep: func(context.Context) {}, Clock: clocktesting.NewFakeClock(metav1.Now().Time), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- loop.Run(ctx) }()
	n.read <- &v1.Node{}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"add a"}, n.calls); diff != "" {
		t.Error(diff)
	}
}
