package admit

import (
	"log/slog"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// evictions records which pods end, and who waits for them.
type evictions struct {
	failures map[types.UID]pod.Failure
	waits    map[types.UID][]types.UID
}

func (e *evictions) Evict(uid types.UID, failure pod.Failure, _ *int64) bool {
	e.failures[uid] = failure
	return true
}

func (e *evictions) StartAfter(uid types.UID, others []types.UID) { e.waits[uid] = others }

func TestPreempting(t *testing.T) {
	e := &evictions{failures: map[types.UID]pod.Failure{}, waits: map[types.UID][]types.UID{}}
	preempt := Preempting(e, noEvents{}, slog.New(slog.DiscardHandler))
	critical, victim := asking("a", 1), asking("z", 1)
	lacking := []Shortage{{v1.ResourceCPU, 1000, 0, 0}}
	if err := preempt(critical, nil, lacking); err == nil || len(e.waits) > 0 {
		t.Errorf("without victims: %v, %v", err, e.waits)
	}
	if err := preempt(critical, []*v1.Pod{victim}, lacking); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.waits["a"], []types.UID{"z"}) {
		t.Errorf("it waits for %v", e.waits)
	}
	failure, ended := e.failures["z"]
	if !ended || failure.Reason != "Preempting" || failure.Condition == nil || failure.Condition.Type != v1.DisruptionTarget {
		t.Errorf("the victim ends with %+v", failure)
	}
}
