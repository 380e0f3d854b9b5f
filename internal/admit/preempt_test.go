package admit

import (
	"log/slog"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// evictions records evicted pods, and pods that start after others.
type evictions struct {
	failures   map[types.UID]pod.Failure
	startAfter map[types.UID][]types.UID
}

func (e *evictions) Evict(uid types.UID, failure pod.Failure, _ *int64) bool {
	e.failures[uid] = failure
	return true
}

func (e *evictions) StartAfter(uid types.UID, others []types.UID) { e.startAfter[uid] = others }

func TestPreemptEvictsVictims(t *testing.T) {
	e := &evictions{failures: map[types.UID]pod.Failure{}, startAfter: map[types.UID][]types.UID{}}
	var counted []string
	preempt := NewPreempt(e, noEvents{}, func(resource string) { counted = append(counted, resource) }, slog.New(slog.DiscardHandler))
	critical, victim := requesting("a", 1), requesting("z", 1)
	shortages := []Shortage{{v1.ResourceCPU, 1000, 0, 0}}
	if err := preempt(critical, nil, shortages); err == nil || len(e.startAfter) > 0 {
		t.Errorf("without victims: %v, %v", err, e.startAfter)
	}
	if err := preempt(critical, []*v1.Pod{victim}, shortages); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.startAfter["a"], []types.UID{"z"}) {
		t.Errorf("the critical pod starts after %v, want z", e.startAfter)
	}
	if !slices.Equal(counted, []string{"cpu"}) {
		t.Errorf("counted preemptions for %v, want cpu once", counted)
	}
	failure, evicted := e.failures["z"]
	if !evicted || failure.Reason != "Preempting" || failure.Condition == nil || failure.Condition.Type != v1.DisruptionTarget {
		t.Errorf("the victim is evicted with %+v", failure)
	}
}
