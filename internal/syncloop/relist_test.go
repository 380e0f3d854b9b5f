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

func TestRelistedBeforeChangesAreHandled(t *testing.T) {
	n := &node{cpu: 10, wanted: map[types.UID]*v1.Pod{}, given: map[types.UID]int64{}, active: map[types.UID]*v1.Pod{}, waits: map[types.UID]bool{}}
	loop, err := New(Deps{
		Snapshots: make(chan pod.Snapshot), Desired: desired{n}, Observer: observer{}, Workers: n, Allocator: n, Admit: n.admit,
		Relisted: func() {
			if n.wanted["a"] == nil {
				t.Error("called before the list was applied")
			}
			n.did = append(n.did, "relisted")
		},
		Housekeep: func(context.Context) {}, Clock: clocktesting.NewFakeClock(metav1.Now().Time), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.next = []pod.Change{{Op: pod.Add, Pod: of("a", 1)}}
	loop.apply(t.Context(), pod.Snapshot{Listed: true})
	n.next = []pod.Change{{Op: pod.Update, Pod: of("a", 2)}}
	loop.apply(t.Context(), pod.Snapshot{})
	if diff := cmp.Diff([]string{"relisted", "add a 1", "update a 2"}, n.did); diff != "" {
		t.Error(diff)
	}
}
